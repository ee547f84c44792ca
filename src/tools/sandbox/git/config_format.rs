//! Parses git configuration files within limits, following git's rules for sections, variables, values and includes.

use crate::sys::file::{ReadError, read};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum file size in bytes. Configuration files are written by hand and therefore small.
const MAX_BYTES: u64 = 1 << 20;
/// Maximum number of files that may be read together.
const MAX_FILES: usize = 64;
/// Maximum depth of includes, which is the same as in git.
const MAX_DEPTH: usize = 10;

/// A variable that a file sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    /// Name of the section, in lower case.
    pub section: String,
    /// Quoted name that follows the section, if there is one.
    pub subsection: Option<Vec<u8>>,
    /// Name of the variable, in lower case.
    pub name: String,
    /// The value, or `None` if there is no `=`, which means true.
    pub value: Option<Vec<u8>>,
}

/// The variables in a file, up to the line at which git would fail.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ParsedConfig {
    pub variables: Vec<Variable>,
    /// Whether the text becomes invalid at some line.
    pub is_broken: bool,
}

/// The variables in several files, in the order in which git reads them.
#[derive(Debug, Default)]
pub(super) struct GitVariables {
    /// Each variable, along with the file that sets it.
    pub variables: Vec<(PathBuf, Variable)>,
    /// Reasons why variables may be missing.
    pub gaps: Vec<String>,
    read: usize,
    /// Paths that have already been read. The same file may have several paths, and its includes depend on the
    /// directory in the path.
    known: BTreeSet<PathBuf>,
}

/// Function that returns whether an `includeIf` with this condition, in this file, applies.
pub(super) type Follows<'a> = &'a dyn Fn(&[u8], &Path) -> bool;

impl GitVariables {
    /// Reads a file along with the files that it includes. A file that does not exist sets no variables.
    pub(super) fn add(&mut self, file: &Path, home: Option<&Path>, follows: Follows<'_>) {
        self.add_at(file, home, follows, 0);
    }

    fn add_at(&mut self, file: &Path, home: Option<&Path>, follows: Follows<'_>, depth: usize) {
        let shown = file.display();
        let real = match file.canonicalize() {
            Ok(real) => real,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return,
            Err(error) => return self.gaps.push(format!("cannot read `{shown}`: {error}")),
        };
        // Git ignores a directory at this path. A directory exists there briefly while a sandboxed command of another
        // aye process starts.
        if real.is_dir() || !self.known.insert(file.to_owned()) {
            return;
        }
        self.read += 1;
        if self.read > MAX_FILES || depth > MAX_DEPTH {
            return self.gaps.push(format!("`{shown}` exceeds the limit on included files"));
        }
        let text = match read(&real, MAX_BYTES) {
            Ok(text) => text,
            Err(ReadError::TooLarge { .. }) => return self.gaps.push(format!("`{shown}` is too large")),
            Err(ReadError::Io(error)) => return self.gaps.push(format!("cannot read `{shown}`: {error}")),
        };
        let ParsedConfig { variables, is_broken } = parse(&text);
        if is_broken {
            self.gaps.push(format!("`{shown}` is not a valid git configuration"));
        }
        for variable in variables {
            let included = match (variable.section.as_str(), variable.name.as_str(), &variable.subsection) {
                ("include", "path", None) => true,
                ("includeif", "path", Some(condition)) => follows(condition, file),
                _ => false,
            };
            let path = variable.value.clone().filter(|_| included);
            self.variables.push((file.to_owned(), variable));
            let Some(path) = path else { continue };
            match include_path(&path, file, home) {
                Some(path) => self.add_at(&path, home, follows, depth + 1),
                None => self.gaps.push(format!("`{shown}` includes a file in the home directory of another user")),
            }
        }
    }
}

/// Returns the file to which an `include.path` in `file` refers, or `None` if the path cannot be expanded.
fn include_path(path: &[u8], file: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let text = Path::new(OsStr::from_bytes(path));
    if let Ok(below) = text.strip_prefix("~") {
        return home.map(|home| home.join(below));
    }
    if path.starts_with(b"~") || path.starts_with(b"%(") {
        return None;
    }
    Some(file.parent().unwrap_or(Path::new("/")).join(text))
}

/// Parses text in the same way as git does.
pub(super) fn parse(text: &[u8]) -> ParsedConfig {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut reader = Reader { text, at: 0 };
    let mut parsed = ParsedConfig::default();
    // Git also accepts variables before the first section.
    let mut header: (String, Option<Vec<u8>>) = (String::new(), None);
    loop {
        match reader.next() {
            None => return parsed,
            Some(b'#' | b';') => reader.skip_line(),
            Some(byte) if is_space(byte) => {}
            Some(b'[') => match reader.header() {
                Some(found) => header = found,
                None => break,
            },
            Some(byte) if byte.is_ascii_alphabetic() => {
                let (section, subsection) = header.clone();
                let Some((name, value)) = reader.variable(byte) else { break };
                parsed.variables.push(Variable { section, subsection, name, value });
            }
            Some(_) => break,
        }
    }
    parsed.is_broken = true;
    parsed
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// Returns the next byte. A CR that precedes an LF is skipped.
    fn next(&mut self) -> Option<u8> {
        let byte = *self.text.get(self.at)?;
        self.at += 1;
        if byte == b'\r' && self.text.get(self.at) == Some(&b'\n') {
            self.at += 1;
            return Some(b'\n');
        }
        Some(byte)
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|byte| byte != b'\n') {}
    }

    /// Parses a section header from the byte that follows `[`: `core]`, `filter "x"]` or `filter.x]`.
    fn header(&mut self) -> Option<(String, Option<Vec<u8>>)> {
        let mut name = String::new();
        loop {
            match self.next()? {
                b']' => {
                    // Old syntax; its subsection is in lower case.
                    return Some(match name.split_once('.') {
                        Some((section, subsection)) => (section.to_owned(), Some(subsection.as_bytes().to_vec())),
                        None => (name, None),
                    });
                }
                byte if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.') => {
                    name.push(char::from(byte.to_ascii_lowercase()));
                }
                byte if byte != b'\n' && is_space(byte) => {
                    let subsection = self.subsection()?;
                    return Some(match name.split_once('.') {
                        // Git joins both subsections into one name.
                        Some((section, first)) => {
                            (section.to_owned(), Some([first.as_bytes(), b".", subsection.as_slice()].concat()))
                        }
                        None => (name, Some(subsection)),
                    });
                }
                _ => return None,
            }
        }
    }

    fn subsection(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.next()? {
                b'"' => break,
                b'\n' => return None,
                byte if is_space(byte) => {}
                _ => return None,
            }
        }
        let mut subsection = Vec::new();
        loop {
            match self.next()? {
                b'\n' | 0 => return None,
                b'"' => break,
                b'\\' => match self.next()? {
                    b'\n' | 0 => return None,
                    byte => subsection.push(byte),
                },
                byte => subsection.push(byte),
            }
        }
        (self.next()? == b']').then_some(subsection)
    }

    /// Parses a variable name that starts with `first`, along with its value.
    fn variable(&mut self, first: u8) -> Option<(String, Option<Vec<u8>>)> {
        let mut name = String::from(char::from(first.to_ascii_lowercase()));
        let mut byte = self.next();
        while let Some(letter) = byte.filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'-') {
            name.push(char::from(letter.to_ascii_lowercase()));
            byte = self.next();
        }
        while matches!(byte, Some(b' ' | b'\t')) {
            byte = self.next();
        }
        match byte {
            None | Some(b'\n') => Some((name, None)),
            Some(b'=') => Some((name, Some(self.value()?))),
            Some(_) => None,
        }
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let (mut value, mut spaces) = (Vec::new(), Vec::new());
        let (mut quoted, mut comment) = (false, false);
        loop {
            let byte = match self.next() {
                None | Some(b'\n') if quoted => return None,
                None | Some(b'\n') => return Some(value),
                Some(0) => return None,
                Some(byte) => byte,
            };
            if comment {
                continue;
            }
            if is_space(byte) && !quoted {
                if !value.is_empty() {
                    spaces.push(byte);
                }
                continue;
            }
            if !quoted && matches!(byte, b'#' | b';') {
                comment = true;
                continue;
            }
            value.append(&mut spaces);
            match byte {
                b'\\' => match self.next() {
                    None | Some(b'\n') => {}
                    Some(b't') => value.push(b'\t'),
                    Some(b'b') => value.push(0x08),
                    Some(b'n') => value.push(b'\n'),
                    Some(byte @ (b'\\' | b'"')) => value.push(byte),
                    Some(_) => return None,
                },
                b'"' => quoted = !quoted,
                byte => value.push(byte),
            }
        }
    }
}

/// Returns whether git considers the byte a space.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn names(text: &str) -> Vec<String> {
        let shown = |variable: &Variable| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let subsection = variable.subsection.as_deref().map(|name| format!(".{}", text(name))).unwrap_or_default();
            let value = variable.value.as_deref().map(|value| format!("={}", text(value))).unwrap_or_default();
            format!("{}{subsection}.{}{value}", variable.section, variable.name).trim_start_matches('.').to_owned()
        };
        parse(text.as_bytes()).variables.iter().map(shown).collect()
    }

    const TEXTS: &[&str] = &[
        "[core]\n\tfsmonitor = true\n",
        "[core] bare\n[a]b=c",
        "[filter \"a b\\\"c\\\\d\"]\r\n  Clean = x y  \r\n",
        "\u{feff}[Filter.FOO]\nclean = \"a # b\" c ; d\n",
        "[a \"B\"]\nx = one \\\n  two\n y=\"t\\tb\\n\"\n",
        "# c\n; d\n[x]\n# [y]\nz\n",
        "[a.b \"C\"]\nx=1\n",
        "[a]\nx = \"open\n",
        "[a]\n1x = 2\n",
        "[a\n]x=1\n",
        "x = 1\n",
        "[a]\nx = a\\qb\n",
        "[a]\nx =    \n[b]\ny= \"  q \" \n",
    ];

    #[test]
    fn config_files_are_parsed_as_by_git() {
        assert_eq!(names(TEXTS[2]), ["filter.a b\"c\\d.clean=x y"]);
        assert_eq!(names(TEXTS[3]), ["filter.foo.clean=a # b c"]);
        assert_eq!(names("[a]\nx=1\n[b\n"), ["a.x=1"]);
        assert!(parse(b"[a]\nx = 1\0\n").is_broken && parse(b"[a \"x\0\"]\n").is_broken);
        let tree = tempfile::tempdir().unwrap();
        let file = tree.path().join("config");
        for text in TEXTS {
            std::fs::write(&file, text).unwrap();
            let mut git = Command::new("git");
            let git = git.args(["config", "--list", "-z", "--file"]).arg(&file).env("GIT_CONFIG_NOSYSTEM", "1").output();
            let Ok(git) = git else { return eprintln!("skipped: there is no git here") };
            let parsed = parse(text.as_bytes());
            assert_eq!(parsed.is_broken, !git.status.success(), "{text:?}");
            if !parsed.is_broken {
                let told = String::from_utf8_lossy(&git.stdout);
                let told: Vec<String> = told.split_terminator('\0').map(|entry| entry.replacen('\n', "=", 1)).collect();
                assert_eq!(names(text), told, "{text:?}");
            }
        }
    }

    #[test]
    fn includes_are_followed_up_to_a_limit_and_omissions_are_reported() {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        std::fs::write(at("a"), "[include]\npath = b\n[includeIf \"gitdir:/nowhere/\"]\npath = ~/c\n").unwrap();
        std::fs::write(at("b"), "[include]\npath = a\npath = missing\n[filter \"x\"]\nclean = y\n").unwrap();
        std::fs::write(at("c"), "[filter \"z\"]\nclean = y\n").unwrap();
        let read = |file: &str, follows: bool| {
            let mut files = GitVariables::default();
            files.add(&at(file), Some(tree.path()), &|_, _| follows);
            let clean = files.variables.iter().filter(|(_, variable)| variable.name == "clean").count();
            (clean, files.gaps)
        };
        assert_eq!(read("a", true), (2, Vec::new()));
        assert_eq!(read("a", false), (1, Vec::new()));
        for directory in ["e", "f"] {
            std::fs::create_dir(at(directory)).unwrap();
        }
        std::fs::write(at("e/inc"), "[include]\npath = x\n").unwrap();
        std::os::unix::fs::symlink("../e/inc", at("f/inc")).unwrap();
        std::fs::write(at("f/x"), "[filter \"z\"]\nclean = y\n").unwrap();
        std::fs::write(at("twice"), "[include]\npath = e/inc\npath = f/inc\n").unwrap();
        assert_eq!(read("twice", true), (1, Vec::new()), "git resolves a path from the name of the including file");
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::write(at("large"), vec![b'#'; 2 << 20]).unwrap();
        std::fs::write(at("d"), "[include]\npath = pipe\npath = large\npath = ~other/x\n").unwrap();
        let (_, gaps) = read("d", true);
        assert_eq!(gaps.len(), 3, "{gaps:?}");
        for number in 0..100 {
            std::fs::write(at(&format!("n{number}")), format!("[include]\npath = n{}\n", number + 1)).unwrap();
        }
        assert_eq!(read("n0", true).1.len(), 1);
    }
}
