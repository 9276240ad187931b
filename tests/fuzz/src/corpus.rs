//! The named corpus in git: one file a seed, its name the situation in words. Frames and claims are
//! written as hex with comments, so that a reader sees what is in them; policies as they are.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::Target;

/// How a target's seeds are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Pairs of hexadecimal digits; from `#` to the end of the line is comment.
    Hex,
    /// A policy file.
    Toml,
}

impl Form {
    const fn ending(self) -> &'static str {
        match self {
            Self::Hex => "hex",
            Self::Toml => "toml",
        }
    }
}

/// One named input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The situation, in words joined by hyphens.
    pub name: String,
    /// What the target gets.
    pub bytes: Vec<u8>,
}

/// All seeds of a target, by name.
///
/// # Errors
/// If there are none, or one can't be read.
pub fn seeds(target: Target) -> io::Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    for entry in fs::read_dir(folder(target))? {
        seeds.push(read(&entry?.path(), target.form)?);
    }
    seeds.sort_by(|one, other| one.name.cmp(&other.name));
    match seeds.is_empty() {
        true => Err(io::Error::other(format!("{} has no seeds", target.name))),
        false => Ok(seeds),
    }
}

/// Adds a seed under this name and returns its file, which then wants comments.
///
/// # Errors
/// If the name is taken, or is none.
pub fn add(target: Target, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(allowed) {
        let reason = "write the situation in words of a-z and 0-9, joined by hyphens";
        return Err(io::Error::other(format!("`{name}` is no name for a seed: {reason}")));
    }
    let path = folder(target).join(format!("{name}.{}", target.form.ending()));
    let content = match target.form {
        Form::Hex => to_hex(bytes).into_bytes(),
        Form::Toml => bytes.to_vec(),
    };
    let mut file = fs::File::create_new(&path)
        .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
    io::Write::write_all(&mut file, &content)?;
    Ok(path)
}

/// Bytes as a seed file holds them, sixteen a line.
#[must_use]
pub fn to_hex(bytes: &[u8]) -> String {
    let line = |chunk: &[u8]| {
        let digits: Vec<String> = chunk.iter().map(|byte| format!("{byte:02x}")).collect();
        digits.join(" ") + "\n"
    };
    bytes.chunks(16).map(line).collect()
}

fn folder(target: Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name)
}

fn read(path: &Path, form: Form) -> io::Result<Seed> {
    let wrong = |reason: &str| io::Error::other(format!("{}: {reason}", path.display()));
    if path.extension().is_none_or(|ending| ending != form.ending()) {
        return Err(wrong(&format!("a seed of this target ends in .{}", form.ending())));
    }
    let bytes = fs::read(path)?;
    let bytes = match form {
        Form::Hex => from_hex(&String::from_utf8_lossy(&bytes)).map_err(|line| wrong(&line))?,
        Form::Toml => bytes,
    };
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Seed { name, bytes })
}

fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for line in text.lines() {
        let written = line.split('#').next().unwrap_or_default();
        let digits: Vec<u8> = written.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        for pair in digits.chunks(2) {
            let byte = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2);
            let byte = byte.and_then(|pair| u8::from_str_radix(pair, 16).ok());
            bytes.push(byte.ok_or_else(|| format!("no pairs of hexadecimal digits: {line}"))?);
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_read_with_its_comments_and_written_back() {
        assert_eq!(from_hex("# a frame\n0a 0B0c # three\n\n ff"), Ok(vec![10, 11, 12, 255]));
        assert!(from_hex("0").is_err());
        assert!(from_hex("0x00").is_err());
        assert_eq!(to_hex(&[1, 0xfe]), "01 fe\n");
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(&to_hex(&bytes)), Ok(bytes));
    }
}
