//! The corpus on the command line, for `cargo xtask fuzz`: `unpack TARGET FOLDER` writes the seeds as the
//! bytes that libFuzzer reads; `add TARGET FILE NAME` puts what it found among them.

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs, io};

use limiter_fuzz::{Target, corpus};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["unpack", target, folder] => unpack(target, Path::new(folder)),
        ["add", target, file, name] => add(target, Path::new(file), name),
        _ => Err(io::Error::other("seeds unpack TARGET FOLDER | seeds add TARGET FILE NAME")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("seeds: {error}");
            ExitCode::FAILURE
        }
    }
}

fn unpack(target: &str, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for seed in corpus::seeds(named(target)?)? {
        fs::write(folder.join(seed.name), seed.bytes)?;
    }
    Ok(())
}

fn add(target: &str, file: &Path, name: &str) -> io::Result<()> {
    let bytes = fs::read(file)?;
    let path = corpus::add(named(target)?, name, &bytes)?;
    println!("{}: say in it what it is about, then commit it", path.display());
    Ok(())
}

fn named(target: &str) -> io::Result<Target> {
    Target::named(target).ok_or_else(|| io::Error::other(format!("there is no target {target}")))
}
