//! Rust source files as text, and their code without comments, strings and unit tests.

use std::fs;
use std::path::{Path, PathBuf};

/// File with its path relative to the package.
pub struct Source {
    pub path: String,
    pub text: String,
    pub role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Product,
    /// `tests.rs`, `…_tests.rs`, files below a `tests` directory, and modules declared under `#[cfg(test)]`.
    Test,
}

impl Source {
    /// Returns the module of the file: the first name below `src`, or `None` for the crate roots.
    pub fn module(&self) -> Option<&str> {
        let below = self.path.strip_prefix("src/")?;
        match below.split_once('/') {
            Some((module, _)) => Some(module),
            None => below.strip_suffix(".rs").filter(|name| !["lib", "main"].contains(name)),
        }
    }

    /// Returns the number of parent modules: 1 for `src/a/mod.rs`, 2 for `src/a/b.rs`.
    pub fn depth(&self) -> usize {
        self.path.split('/').filter(|part| *part != "mod.rs").count() - 1
    }

    /// Returns the code outside unit tests. Preserves line breaks, so that lines can be counted.
    pub fn code(&self) -> String {
        without_unit_tests(&bare(&self.text))
    }
}

pub fn package() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub fn read(path: &str) -> String {
    fs::read_to_string(package().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns all Rust files below a directory of the package, sorted by path.
pub fn sources(directory: &str) -> Vec<Source> {
    let mut found = Vec::new();
    collect(&package().join(directory), &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    let only_tests: Vec<_> = found.iter().flat_map(test_modules).collect();
    for source in &mut found {
        if only_tests.iter().any(|place| source.path == format!("{place}.rs") || source.path.starts_with(&format!("{place}/"))) {
            source.role = Role::Test;
        }
    }
    found
}

/// Returns the source files of the program, without tests.
pub fn products() -> Vec<Source> {
    sources("src").into_iter().filter(|source| source.role == Role::Product).collect()
}

/// Returns the paths, without `.rs`, of the modules that a file declares under `#[cfg(test)]`.
fn test_modules(source: &Source) -> Vec<String> {
    let directory =
        source.path.trim_end_matches(".rs").trim_end_matches("/mod").trim_end_matches("/lib").trim_end_matches("/main");
    let declared = |rest: &str| {
        let item = rest.trim_start().split(';').next()?;
        let (visibility, name) = item.split_once("mod ")?;
        let plain = visibility.is_empty() || visibility.starts_with("pub");
        (plain && !name.contains(char::is_whitespace)).then(|| format!("{directory}/{name}"))
    };
    source.text.split("#[cfg(test)]").skip(1).filter_map(declared).collect()
}

fn collect(directory: &Path, into: &mut Vec<Source>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let relative = path.strip_prefix(package()).map(|path| path.to_string_lossy().replace('\\', "/")).unwrap_or_default();
            let role = if relative.ends_with("tests.rs") || relative.starts_with("tests/") || relative.contains("/tests/") {
                Role::Test
            } else {
                Role::Product
            };
            into.push(Source { text: fs::read_to_string(&path).unwrap_or_default(), path: relative, role });
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Code,
    Comment,
    /// String or character literal with its quotes.
    Literal,
}

/// Splits a file into code, comments and literals.
pub fn pieces(text: &str) -> Vec<(Kind, &str)> {
    let mut found = Vec::new();
    let (mut start, mut at) = (0, 0);
    let mut word_before = false;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let piece = if rest.starts_with("//") {
            Some((Kind::Comment, rest.find('\n').unwrap_or(rest.len())))
        } else if rest.starts_with("/*") {
            Some((Kind::Comment, block_comment(rest)))
        } else if let Some(length) = (!word_before).then(|| raw_string(rest)).flatten() {
            Some((Kind::Literal, length))
        } else if first == '"' {
            Some((Kind::Literal, quoted(rest, '"')))
        } else if first == '\'' && is_character(rest) {
            Some((Kind::Literal, quoted(rest, '\'')))
        } else {
            None
        };
        let Some((kind, length)) = piece else {
            word_before = first.is_alphanumeric() || first == '_';
            at += first.len_utf8();
            continue;
        };
        found.extend((start < at).then(|| (Kind::Code, &text[start..at])));
        found.push((kind, &text[at..at + length]));
        at += length;
        start = at;
        word_before = false;
    }
    found.extend((start < at).then(|| (Kind::Code, &text[start..at])));
    found
}

/// Replaces each comment, string and character with one space and its line breaks.
fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (kind, piece) in pieces(text) {
        if kind == Kind::Code {
            out.push_str(piece);
        } else {
            out.push(' ');
            out.extend(piece.chars().filter(|&c| c == '\n'));
        }
    }
    out
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, _) in text.char_indices() {
        if text[at..].starts_with("/*") {
            depth += 1;
        } else if text[..at].ends_with("*/") && at > 3 {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return at;
            }
        }
    }
    text.len()
}

/// Returns the length of a raw string: `r"…"` or `r#"…"#`, optionally preceded by `b` or `c`.
fn raw_string(text: &str) -> Option<usize> {
    let start = text.strip_prefix(['b', 'c']).unwrap_or(text).strip_prefix('r')?;
    let hashes = start.len() - start.trim_start_matches('#').len();
    let body = start[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = body.find(&close).map_or(body.len(), |at| at + close.len());
    Some(text.len() - body.len() + end)
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            letter if letter == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns whether a quote begins a character literal, not a lifetime.
fn is_character(text: &str) -> bool {
    let mut letters = text.chars().skip(1);
    match letters.next() {
        Some('\\') => true,
        Some(_) => letters.next() == Some('\''),
        None => false,
    }
}

/// Removes what `#[cfg(test)]` marks: modules and other items, fields, and statements.
fn without_unit_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find(MARK) {
        out.push_str(&rest[..at]);
        let after = &rest[at + MARK.len()..];
        let end = item_end(after);
        out.extend(after[..end].chars().filter(|&c| c == '\n'));
        rest = &after[end..];
    }
    out + rest
}

/// Returns the end of an item or a field: after its first block, semicolon or comma, or before the end of the block
/// that contains it.
fn item_end(item: &str) -> usize {
    let (mut depth, mut angles) = (0_usize, 0_usize);
    let mut before = ' ';
    for (at, letter) in item.char_indices() {
        match letter {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' if depth == 0 => return at,
            '}' if depth == 1 => return at + 1,
            '}' | ')' | ']' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            ',' if depth == 0 && angles == 0 && lines_with(&item[..at], "where").is_empty() => return at + 1,
            // rustfmt writes a space before an operator, but none before generic arguments.
            '<' if depth == 0 && !before.is_whitespace() => angles += 1,
            '>' if depth == 0 && !['-', '='].contains(&before) => angles = angles.saturating_sub(1),
            _ => {}
        }
        before = letter;
    }
    item.len()
}

/// Returns the 1-based lines of code that contain a word. Only whole words count.
pub fn lines_with(code: &str, word: &str) -> Vec<usize> {
    let whole = |line: &str| {
        line.match_indices(word).any(|(at, _)| {
            let part_of_name = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
            let inside = |edge: char| edge.is_alphanumeric() || edge == '_';
            let open_start = !word.starts_with(inside) || !part_of_name(line[..at].chars().next_back());
            let open_end = !word.ends_with(inside) || !part_of_name(line[at + word.len()..].chars().next());
            open_start && open_end
        })
    };
    code.lines().enumerate().filter(|(_, line)| whole(line)).map(|(number, _)| number + 1).collect()
}

#[test]
fn code_excludes_comments_strings_and_unit_tests() {
    let cases = [
        ("a // b\nc", "a  \nc"),
        ("a /* b /* c */ d */ e", "a   e"),
        (r#"f("x // y", 'z', '\'', &'a str)"#, "f( ,  ,  , &'a str)"),
        ("r#\"unsafe \" \"# + for\"x\"", "  + for "),
        ("a\n#[cfg(test)]\nmod tests {\n  fn b() { c }\n}\nd", "a\n\n\n\n\nd"),
        ("a\n#[cfg(test)]\nmod tests;\nd", "a\n\n\nd"),
        ("a {\n#[cfg(test)]\nb: C<D, [E; 2]>,\nf: G\n}\nh", "a {\n\n\nf: G\n}\nh"),
        ("a(#[cfg(test)] b) {\n#[cfg(test)]\nc: (d, e)\n}\nf", "a() {\n\n\n}\nf"),
        ("#[cfg(test)]\nfn a<B, C>(d: B, e: C) -> F<B, C>\nwhere\nB: G,\nC: H,\n{\ni;\n}\nj", "\n\n\n\n\n\n\n\nj"),
    ];
    for (text, expected) in cases {
        assert_eq!(without_unit_tests(&bare(text)), expected, "{text}");
    }
}

#[test]
fn test_modules_are_found_by_their_declaration() {
    let text =
        "mod a;\n#[cfg(test)]\nmod b;\n#[cfg(test)]\npub(crate) mod c;\n#[cfg(test)]\nmod d {\n}\n#[cfg(test)]\nfn e() {}\n";
    for (path, directory) in [("src/x/mod.rs", "src/x"), ("src/x/y.rs", "src/x/y"), ("src/lib.rs", "src")] {
        let source = Source { path: path.to_owned(), text: text.to_owned(), role: Role::Product };
        assert_eq!(test_modules(&source), [format!("{directory}/b"), format!("{directory}/c")]);
    }
}

#[test]
fn only_whole_words_match() {
    assert_eq!(lines_with("unsafe_code\nunsafe {\n", "unsafe"), [2]);
    assert_eq!(lines_with("reader.unwrap_or(1)\nx.unwrap()", ".unwrap()"), [2]);
}
