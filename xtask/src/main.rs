//! The command line of the repository's chores: `cargo xtask <chore>`.
//!
//! Exit status: 0 fine, 1 the chore found something or failed, 2 usage, 3 `gpu` could not check everything.
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::SystemTime;

use clap::{Parser, Subcommand};
use xtask::dist::{self, Target};
use xtask::finding::Finding;
use xtask::gpu::programs::Programs;
use xtask::gpu::report::Outcome as Compared;
use xtask::version::{self, Version};
use xtask::{generate, gpu, layout, package, pictures, repository, site, size, skipped, tidy};

/// Repository chores.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Check the house style: sizes, names, words, sentences, dead files, file heads, links, manifests
    Tidy,
    /// Check dependencies, unsafe code and promised absences against the map of crates
    Layout,
    /// Print one line for each test that could not run here, from the last test runs
    Skipped {
        /// Empty the list instead
        #[arg(long, conflicts_with = "expect_none")]
        clear: bool,
        /// Fail when a test lacked something; tests that only take long are left to .ci/long
        #[arg(long)]
        expect_none: bool,
    },
    /// Print lines of production code by crate, and words of documents
    Size,
    /// Build the documents as a searchable site in target/site; installs mdBook where it is not there
    Site,
    /// Make the pictures of the documents, and in DIR the same screens in all sizes; takes six minutes and needs Chromium
    Pictures {
        /// Where all of them go
        #[arg(value_name = "DIR", default_value = "target/pictures")]
        directory: PathBuf,
    },
    /// On a machine with NVIDIA's GPUs, compare Telltale with nvidia-smi, PyTorch and NCCL; print a table in Markdown
    Gpu {
        /// Compare nothing; build and fill this folder, from which it runs on a machine without the repository
        #[arg(long, value_name = "DIR", conflicts_with = "programs")]
        into: Option<PathBuf>,
        /// Build nothing; use the programs of a folder that --into has filled
        #[arg(long, value_name = "DIR")]
        programs: Option<PathBuf>,
    },
    /// Make what a release consists of in target/dist: archive, packages, wheel, checksums; installs its tools below target
    Dist {
        /// The processor it is for: x86_64 or aarch64; this machine's where it is not given
        #[arg(long, value_name = "PROCESSOR")]
        target: Option<Target>,
        /// Compile nothing; package what was built last
        #[arg(long)]
        no_build: bool,
    },
    /// Package the crates that others link, in target/package, and make their documents as docs.rs does; publish nothing
    Package {
        /// Compile each package too, which takes minutes
        #[arg(long)]
        verify: bool,
    },
    /// Compare the version wherever it stands with that of Cargo.toml; with NEW, write that everywhere
    Version {
        /// The next version, such as 0.2.0
        #[arg(value_name = "NEW")]
        new: Option<Version>,
    },
    /// Run what every change must pass, as .ci/run does, but install nothing
    Ci,
    /// Write the files that are made from others: metric definitions, protobuf messages, JSON Schemas
    Generate {
        /// Write nothing; fail when a file is stale
        #[arg(long)]
        check: bool,
    },
}

/// Whether the chore found nothing to complain about.
type Outcome = Result<bool, Box<dyn Error>>;

/// The exit status of a comparison that agrees as far as it went.
const NOT_ALL_CHECKED: u8 = 3;

fn main() -> ExitCode {
    let outcome = match Arguments::parse().chore {
        Chore::Tidy => run_tidy(),
        Chore::Layout => run_layout(),
        Chore::Skipped { clear, expect_none } => run_skipped(clear, expect_none),
        Chore::Size => run_size(),
        Chore::Site => run_site(),
        Chore::Pictures { directory } => run_pictures(&directory),
        Chore::Ci => run_ci(),
        Chore::Dist { target, no_build } => run_dist(target, !no_build),
        Chore::Package { verify } => run_package(verify),
        Chore::Version { new } => run_version(new),
        Chore::Generate { check } => run_generate(check),
        Chore::Gpu { into: Some(folder), .. } => fill(&folder),
        Chore::Gpu { into: None, programs } => match run_gpu(programs.as_deref()) {
            Ok(Compared::NotAllChecked) => return ExitCode::from(NOT_ALL_CHECKED),
            other => other.map(|compared| compared == Compared::Agrees),
        },
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            let mut cause = error.source();
            while let Some(next) = cause {
                eprintln!("  because: {next}");
                cause = next.source();
            }
            ExitCode::FAILURE
        }
    }
}

fn run_dist(target: Option<Target>, builds: bool) -> Outcome {
    let host = || Target::host().ok_or("this machine's processor is none of them; give --target");
    dist::make(&repository::root(), target.map_or_else(host, Ok)?, builds)?;
    Ok(true)
}

fn run_package(verify: bool) -> Outcome {
    let names = package::make(&repository::root(), verify)?;
    println!("{} crates are packaged in target/package", names.len());
    Ok(true)
}

fn run_version(new: Option<Version>) -> Outcome {
    let root = repository::root();
    if let Some(new) = new {
        version::write(&root, new)?.iter().for_each(|path| println!("wrote {path}"));
    }
    println!("{}", version::of(&root)?);
    Ok(report(&version::check(&root)?))
}

fn run_tidy() -> Outcome {
    Ok(report(&tidy::check(&repository::root())?))
}

fn run_layout() -> Outcome {
    Ok(report(&layout::check(&repository::root())?))
}

fn report(findings: &[Finding]) -> bool {
    for finding in findings {
        println!("{finding}");
    }
    findings.is_empty()
}

fn run_skipped(clear: bool, expect_none: bool) -> Outcome {
    let file = telltale_harness::skipped::path();
    if clear {
        skipped::clear(&file)?;
        return Ok(true);
    }
    let report = skipped::report(&file)?;
    print!("{report}");
    Ok(!expect_none || skipped::missing(&report).is_empty())
}

fn run_size() -> Outcome {
    print!("{}", size::size(&repository::files(&repository::root())?)?);
    Ok(true)
}

fn run_site() -> Outcome {
    let root = repository::root();
    let page = site::make(&root, &repository::files(&root)?)?;
    println!("{}", page.display());
    Ok(true)
}

fn run_pictures(directory: &Path) -> Outcome {
    std::fs::create_dir_all(directory)?;
    let (root, directory) = (repository::root(), std::fs::canonicalize(directory)?);
    let begun = SystemTime::now();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut test = Command::new(cargo);
    test.args(["test", "--package", "telltale", "--test", "main", "cli::pictures"]);
    if !test.env("TELLTALE_PICTURES", &directory).current_dir(&root).status()?.success() {
        return Ok(false);
    }
    for name in pictures::replace(&root.join("docs"), &directory, begun)? {
        println!("wrote docs/{name}");
    }
    Ok(true)
}

fn fill(folder: &Path) -> Outcome {
    let programs = Programs::build(&repository::root())?;
    programs.copy(&std::env::current_exe()?, folder)?;
    println!("{} is filled; its README has the command", folder.display());
    Ok(true)
}

fn run_gpu(folder: Option<&Path>) -> Result<Compared, Box<dyn Error>> {
    // A machine without a GPU need not build first.
    gpu::find()?;
    let programs = match folder {
        Some(folder) => Programs::in_folder(folder)?,
        None => Programs::build(&repository::root())?,
    };
    let report = gpu::compare(&programs)?;
    report.remarks().for_each(|remark| eprintln!("{remark}"));
    print!("{report}");
    Ok(report.outcome())
}

fn run_ci() -> Outcome {
    let script = repository::root().join(".ci/run");
    Ok(Command::new(script).arg("--no-install").status()?.success())
}

fn run_generate(check: bool) -> Outcome {
    let root = repository::root();
    let outputs = generate::outputs(&root)?;
    if check {
        let stale = generate::stale(&root, &outputs);
        for path in &stale {
            println!("{path} is stale: run `cargo xtask generate`");
        }
        return Ok(stale.is_empty());
    }
    let written = generate::write(&root, &outputs)?;
    written.iter().for_each(|path| println!("wrote {path}"));
    if written.is_empty() {
        return Ok(true);
    }
    // Some are made from others, and some from the types that were compiled into this program.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let again = ["run", "--quiet", "--package", "xtask", "--", "generate"];
    Ok(Command::new(cargo).args(again).current_dir(&root).status()?.success())
}
