//! Protobuf messages: `crates/wire/proto/*.proto` become Rust, without a protoc binary.
//!
//! A package `telltale.endpoint.v1` becomes `crates/wire/src/generated/telltale_endpoint_v1.rs`.

use std::path::{Path, PathBuf};

use super::{GenerateError, Output, formatted};

const SOURCES: &str = "crates/wire/proto";
const OUTPUTS: &str = "crates/wire/src/generated";

/// One Rust file for each protobuf package; none when there are no .proto files.
pub(super) fn outputs(root: &Path) -> Result<Vec<Output>, GenerateError> {
    let directory = root.join(SOURCES);
    let sources = proto_files(&directory)?;
    if sources.is_empty() {
        return Ok(Vec::new());
    }
    generate(&directory, &sources)?
        .into_iter()
        .map(|(name, code)| {
            let head = format!(
                "// Generated from {SOURCES} by `cargo xtask generate`. Do not edit.\n\n{code}"
            );
            let text = formatted(root, &head)?;
            Ok(Output { path: format!("{OUTPUTS}/{name}.rs"), text })
        })
        .collect()
}

fn proto_files(directory: &Path) -> Result<Vec<PathBuf>, GenerateError> {
    let failed = |source| GenerateError::Read { path: directory.to_path_buf(), source };
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "proto") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Package names, joined by underscores, and their code; sorted by name.
fn generate(directory: &Path, sources: &[PathBuf]) -> Result<Vec<(String, String)>, GenerateError> {
    let failed = |reason: String| GenerateError::Protobuf { reason };
    let descriptors =
        protox::compile(sources, [directory]).map_err(|error| failed(format!("{error:?}")))?;
    let requests: Vec<_> = descriptors
        .file
        .into_iter()
        .map(|file| (prost_build::Module::from_protobuf_package_name(file.package()), file))
        .collect();
    let modules =
        prost_build::Config::new().generate(requests).map_err(|error| failed(error.to_string()))?;
    let mut packages: Vec<(String, String)> = modules
        .into_iter()
        .map(|(module, code)| (module.parts().collect::<Vec<_>>().join("_"), code))
        .collect();
    packages.sort();
    Ok(packages)
}
