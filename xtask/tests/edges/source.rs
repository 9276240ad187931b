//! Rust sources as searchable text: comments, strings and test code gone, grouped imports written out.
//! A few dozen lines instead of a parser, because it looks for names only.

use std::fs;
use std::path::Path;

/// One file.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Below the workspace's folder.
    pub(crate) path: String,
    /// Lines that hold code.
    pub(crate) lines: usize,
    code: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let code = without_tests(&without_comments_and_strings(text));
        let lines = code.lines().filter(|line| !line.trim().is_empty()).count();
        Self { path: path.to_owned(), lines, code: format!("{code}\n{}", imports(&code)) }
    }

    /// Whether the code has the word, not as a part of a longer one.
    pub(crate) fn names(&self, word: &str) -> bool {
        self.code.match_indices(word).any(|(at, _)| {
            let before = self.code[..at].chars().next_back().is_some_and(is_word);
            let after = self.code[at + word.len()..].starts_with(is_word);
            let inside_left = before && word.starts_with(is_word);
            let inside_right = after && word.ends_with(is_word);
            !inside_left && !inside_right
        })
    }
}

pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The sources of a module: the folder of that name, the file of that name, or both. Test files are
/// left out.
pub(crate) fn read_all(module: &str) -> Vec<Source> {
    let mut sources = Vec::new();
    read_file(&format!("{module}.rs"), &mut sources);
    read_folder(module, &mut sources);
    sources
}

fn read_folder(path: &str, sources: &mut Vec<Source>) {
    let Ok(entries) = fs::read_dir(root().join(path)) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{path}/{name}");
        match name.as_str() {
            "tests" | "tests.rs" => {}
            name if name.ends_with(".rs") => read_file(&path, sources),
            _ => read_folder(&path, sources),
        }
    }
}

fn read_file(path: &str, sources: &mut Vec<Source>) {
    if let Ok(text) = fs::read_to_string(root().join(path)) {
        sources.push(Source::new(path, &text));
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn without_comments_and_strings(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            literal(rest)
        };
        if skipped == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            rest = &rest[skipped..];
        }
    }
    code
}

/// The length of the string or character literal that begins here, or 0.
fn literal(text: &str) -> usize {
    if let Some(raw) = text.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let body = hashes + 2;
            return text[body..].find(&end).map_or(text.len(), |at| body + at + end.len());
        }
    }
    match text.chars().next() {
        Some('"') => quoted(text, '"'),
        // A lifetime has no second quote right after one character.
        Some('\'') if text[1..].starts_with('\\') || text.chars().nth(2) == Some('\'') => {
            quoted(text, '\'')
        }
        _ => 0,
    }
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Drops what follows an attribute that names `test` or `loom`: up to `;` or the end of its braces.
fn without_tests(code: &str) -> String {
    let mut kept = String::new();
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(") {
        let (before, attribute) = rest.split_at(at);
        kept.push_str(before);
        let end = attribute.find(']').map_or(attribute.len(), |end| end + 1);
        let (condition, item) = attribute.split_at(end);
        let is_test = condition.contains("test") || condition.contains("loom");
        if is_test && !condition.contains("not(") {
            rest = &item[item_length(item)..];
        } else {
            kept.push_str(condition);
            rest = item;
        }
    }
    kept + rest
}

fn item_length(item: &str) -> usize {
    let mut depth = 0_i32;
    for (at, c) in item.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => return at + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    item.len()
}

/// Every import as a whole path of its own line.
fn imports(code: &str) -> String {
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("use ") {
        if !code[..at].ends_with(is_word) {
            let tree = code[at + 4..].split(';').next().unwrap_or_default();
            let tree: String = tree.split_whitespace().collect::<Vec<_>>().join(" ");
            expand("", &tree, &mut paths);
        }
    }
    paths.join("\n")
}

fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((path, group)) = tree.split_once('{') else {
        paths.push(format!("{prefix}{tree}"));
        return;
    };
    let prefix = format!("{prefix}{path}");
    let group = group.trim_end();
    let group = group.strip_suffix('}').unwrap_or(group);
    let (mut depth, mut start) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&prefix, &group[start..at], paths);
                start = at + 1;
            }
            _ => {}
        }
    }
    expand(&prefix, &group[start..], paths);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_is_left() {
        let text =
            "fn a<'a>(c: char) { c == '\"' } // aya\nlet s = \"a \\\" aya\"; /* aya */ r#\"aya\"#";
        let code = without_comments_and_strings(text);
        assert_eq!(code, "fn a<'a>(c: char) { c ==  } \nlet s = ;  ");
    }

    #[test]
    fn test_code_is_left_out() {
        let code =
            "a;\n#[cfg(test)]\nmod tests { fn f() { aya } }\nb;#[cfg(any(test, loom))] use aya; c";
        assert_eq!(without_tests(code), "a;\n\nb; c");
        assert_eq!(without_tests("#[cfg(not(test))] a"), "#[cfg(not(test))] a");
    }

    #[test]
    fn grouped_imports_are_written_out() {
        let found = imports("pub use a::{b, c::{self, d}};\nuse e as f;");
        assert_eq!(found.lines().collect::<Vec<_>>(), ["a::b", "a::c::self", "a::c::d", "e as f"]);
    }
}
