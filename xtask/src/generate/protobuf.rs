//! Protobuf messages: `crates/wire/proto/*.proto` become Rust, without a protoc binary.
//!
//! A package `telltale.endpoint.v1` becomes `crates/wire/src/generated/telltale_endpoint_v1.rs`, with
//! the numbers of its fields in `numbers`, for code that writes or bounds a message field by field.
//! A file with services also becomes bytes, by which a server describes itself to its clients:
//! `telemetry.proto` is `crates/wire/src/generated/telemetry_descriptors.rs`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use prost_types::FileDescriptorProto;

use super::{GenerateError, GeneratedFile, formatted};

const SOURCES: &str = "crates/wire/proto";
const OUTPUTS: &str = "crates/wire/src/generated";

/// One Rust file for each protobuf package; none when there are no .proto files.
pub(super) fn outputs(root: &Path) -> Result<Vec<GeneratedFile>, GenerateError> {
    let directory = root.join(SOURCES);
    let sources = proto_files(&directory)?;
    if sources.is_empty() {
        return Ok(Vec::new());
    }
    let mut files = generate(&directory, &sources)?;
    for source in &sources {
        files.extend(descriptors(&directory, source)?);
    }
    files
        .into_iter()
        .map(|(name, code)| {
            let head = format!(
                "// Generated from {SOURCES} by `cargo xtask generate`. Do not edit.\n\n{code}"
            );
            let text = formatted(root, &head)?;
            Ok(GeneratedFile { path: format!("{OUTPUTS}/{name}.rs"), text })
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
    let numbers: BTreeMap<String, String> =
        descriptors.file.iter().map(|file| (joined(file.package()), numbers(file))).collect();
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
        .map(|(name, code)| {
            let of_fields = numbers.get(&name).map_or("", String::as_str);
            (name, format!("{code}\n{of_fields}"))
        })
        .collect();
    packages.sort();
    Ok(packages)
}

fn joined(package: &str) -> String {
    package.replace('.', "_")
}

/// The numbers of a file's fields: one module for each message that has some.
fn numbers(file: &FileDescriptorProto) -> String {
    let messages: String = file
        .message_type
        .iter()
        .filter(|message| !message.field.is_empty())
        .map(|message| {
            let fields: String = message
                .field
                .iter()
                .map(|field| {
                    let name = field.name().to_uppercase();
                    format!("pub const {name}: u32 = {};\n", field.number())
                })
                .collect();
            format!("pub mod {} {{\n{fields}}}\n", snake_case(message.name()))
        })
        .collect();
    format!(
        "/// The numbers of all fields, by message.\n#[allow(dead_code)]\npub mod numbers {{\n{messages}}}\n"
    )
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// Bytes of a descriptor in one line of code, each of which takes up to four characters.
const BYTES_A_LINE: usize = 22;

/// A file's name and its encoded `FileDescriptorSet` as code; none for a file without services.
fn descriptors(directory: &Path, source: &Path) -> Result<Option<(String, String)>, GenerateError> {
    let failed = |error: protox::Error| GenerateError::Protobuf { reason: format!("{error:?}") };
    let mut compiler = protox::Compiler::new([directory]).map_err(failed)?;
    compiler.include_source_info(false).include_imports(true).open_file(source).map_err(failed)?;
    let set = compiler.file_descriptor_set();
    if set.file.iter().all(|file| file.service.is_empty()) {
        return Ok(None);
    }
    let bytes = compiler.encode_file_descriptor_set();
    let lines: Vec<String> = bytes.chunks(BYTES_A_LINE).map(escaped).collect();
    let name = source.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let code = format!(
        "/// The file's `FileDescriptorSet`, encoded.\n\
         pub static DESCRIPTORS: &[u8] = b\"\\\n    {}\\\n\";\n",
        lines.join("\\\n    ")
    );
    Ok(Some((format!("{name}_descriptors"), code)))
}

/// Bytes as they stand in a byte string that goes on in the next line, where blanks are skipped.
fn escaped(bytes: &[u8]) -> String {
    let one = |byte: &u8| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(*byte)),
        b'!'..=b'~' => char::from(*byte).to_string(),
        other => format!("\\x{other:02x}"),
    };
    bytes.iter().map(one).collect()
}
