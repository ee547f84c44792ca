//! Line-based scanner for declarations, which works without a grammar. It recognizes functions, types and similar
//! items by the beginning of the line.

use regex::Regex;
use std::sync::LazyLock;

/// Maximum length of a line to scan, in bytes. Longer lines are usually generated code.
const LINE_BYTES: usize = 400;
/// Maximum number of declarations per file.
const MAX: usize = 2_000;
/// Maximum length of a declaration, in lines.
const LINES: usize = 400;

/// Declaration and the lines it spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub name: String,
    pub kind: String,
    /// First line (1-based).
    pub first: u32,
    pub last: u32,
    pub bytes: u64,
}

/// File extensions and declaration patterns for a language. Each pattern has a group `name` and, if a keyword
/// determines the kind, a group `kind`.
struct SymbolPatterns {
    endings: &'static [&'static str],
    patterns: &'static [&'static str],
}

const LANGUAGES: &[SymbolPatterns] = &[
    SymbolPatterns {
        endings: &["rs"],
        patterns: &[
            r#"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:default\s+)?(?:const\s+)?(?:async\s+)?(?:unsafe\s+)?(?:extern\s+"[^"]*"\s+)?(?<kind>fn)\s+(?<name>\w+)"#,
            r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?(?<kind>struct|enum|trait|union|type|mod|const|static)\s+(?:mut\s+)?(?<name>\w+)",
            r"^\s*(?<kind>macro)_rules!\s*(?<name>\w+)",
        ],
    },
    SymbolPatterns { endings: &["py", "pyi"], patterns: &[r"^\s*(?:async\s+)?(?<kind>def|class)\s+(?<name>\w+)"] },
    SymbolPatterns {
        endings: &["js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte"],
        patterns: &[
            r"^\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?<kind>function|class|interface|enum|type|namespace)\b\*?\s+(?<name>[\w$]+)",
            r"^\s*(?:export\s+)?(?:const|let|var)\s+(?<name>[\w$]+)\s*(?::[^=]+)?=\s*(?:async\s*)?(?:function\b|\([^=]*(?:=>|$)|[\w$]+\s*=>)",
            r"^\s+(?:(?:public|private|protected|static|async|override|readonly|get|set)\s+)*(?<name>[\w$#]+)\s*(?:<[^>]*>)?\([^;=]*\)\s*(?::[^{;]+)?\{\s*$",
        ],
    },
    SymbolPatterns {
        endings: &["go"],
        patterns: &[r"^(?<kind>func)\s+(?:\([^)]*\)\s*)?(?<name>\w+)", r"^\s*(?<kind>type)\s+(?<name>\w+)"],
    },
    SymbolPatterns {
        endings: &["java", "kt", "kts", "scala", "cs", "swift", "dart", "groovy"],
        patterns: &[
            r"^\s*(?:@\w+\s+)*(?:[a-z]+\s+)*(?<kind>class|interface|enum|record|struct|object|trait|protocol|extension|actor|fun|func|def|typealias)\s+(?:<[^>]*>\s*)?(?:\w+\.)?(?<name>\w+)",
            r"^\s+(?:(?:public|private|protected|internal|static|final|abstract|async|override|virtual|synchronized|sealed|default)\s+)+[\w<>\[\],.?\s]+\s(?<name>\w+)\s*\(",
        ],
    },
    SymbolPatterns {
        endings: &["c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx", "m", "mm"],
        patterns: &[
            r"^\s*(?:typedef\s+)?(?<kind>struct|class|enum|union|namespace)\s+(?:class\s+)?(?<name>\w+)\s*(?:final\s*)?(?:[:{]|$)",
            r"^\s*#\s*(?<kind>define)\s+(?<name>\w+)",
            r"^(?:[\w:*&<>,~]+\s+)+[*&]*(?<name>[\w:~]+)\s*\([^;]*$",
        ],
    },
    SymbolPatterns { endings: &["rb"], patterns: &[r"^\s*(?<kind>def|class|module)\s+(?:self\.)?(?<name>[\w:]+[?!]?)"] },
    SymbolPatterns {
        endings: &["php"],
        patterns: &[
            r"^\s*(?:(?:abstract|final|public|private|protected|static)\s+)*(?<kind>function|class|interface|trait|enum)\s+&?(?<name>\w+)",
        ],
    },
    SymbolPatterns {
        endings: &["sh", "bash", "zsh"],
        patterns: &[r"^\s*function\s+(?<name>[\w:-]+)", r"^\s*(?<name>[\w:-]+)\s*\(\s*\)"],
    },
    SymbolPatterns { endings: &["lua"], patterns: &[r"^\s*(?:local\s+)?(?<kind>function)\s+(?<name>[\w.:]+)"] },
    SymbolPatterns { endings: &["ex", "exs"], patterns: &[r"^\s*(?<kind>def|defp|defmacro|defmodule)\s+(?<name>[\w.]+[?!]?)"] },
    SymbolPatterns {
        endings: &["zig"],
        patterns: &[
            r"^\s*(?:pub\s+)?(?:export\s+)?(?:inline\s+)?(?<kind>fn)\s+(?<name>\w+)",
            r"^\s*(?:pub\s+)?const\s+(?<name>\w+)\s*=\s*(?:packed\s+|extern\s+)?(?<kind>struct|enum|union)\b",
        ],
    },
];

/// Keywords that a pattern without a `kind` group could mistake for names.
const NO_NAMES: &[&str] =
    &["if", "for", "while", "switch", "catch", "return", "else", "function", "with", "do", "sizeof", "new", "await", "match"];
/// Kind used for declarations that have no keyword.
const FUNCTION: &str = "function";

static COMPILED: LazyLock<Vec<(&'static SymbolPatterns, Vec<Regex>)>> = LazyLock::new(|| {
    let compiled = |language: &'static SymbolPatterns| language.patterns.iter().filter_map(|one| Regex::new(one).ok()).collect();
    LANGUAGES.iter().map(|language| (language, compiled(language))).collect()
});

/// Returns whether this file's extension belongs to a supported language.
pub(crate) fn is_known(path: &str) -> bool {
    ending(path).is_some_and(|ending| LANGUAGES.iter().any(|language| language.endings.contains(&ending)))
}

fn ending(path: &str) -> Option<&str> {
    path.rsplit('/').next()?.rsplit_once('.').map(|(_, ending)| ending)
}

pub(crate) fn scan_symbols(path: &str, text: &str) -> Vec<Symbol> {
    let Some(ending) = ending(path) else { return Vec::new() };
    let Some((_, patterns)) = COMPILED.iter().find(|(language, _)| language.endings.contains(&ending)) else {
        return Vec::new();
    };
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if line.len() > LINE_BYTES {
            continue;
        }
        let Some(captures) = patterns.iter().find_map(|pattern| pattern.captures(line)) else { continue };
        let kind = captures.name("kind").map(|kind| kind.as_str());
        let is_name = |name: &&str| kind.is_some() || !NO_NAMES.contains(name);
        let Some(name) = captures.name("name").map(|name| name.as_str()).filter(is_name) else { continue };
        let kind = kind.unwrap_or(FUNCTION);
        let last = declaration_end(&lines, at);
        let bytes = lines[at..=last].iter().map(|line| line.len() as u64 + 1).sum();
        let number = |at: usize| u32::try_from(at + 1).unwrap_or(u32::MAX);
        found.push(Symbol { name: name.to_owned(), kind: kind.to_owned(), first: number(at), last: number(last), bytes });
        if found.len() == MAX {
            break;
        }
    }
    found
}

/// Returns the last line of a declaration: either the line that closes it at the same indentation, or the last line
/// that is indented further.
fn declaration_end(lines: &[&str], at: usize) -> usize {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let from = depth(lines[at]);
    if lines[at].trim_end().ends_with(';') {
        return at;
    }
    let mut last = at;
    for (number, line) in lines.iter().enumerate().take(at + LINES).skip(at + 1) {
        let words = line.trim();
        if words.is_empty() {
            continue;
        }
        if depth(line) > from {
            last = number;
            continue;
        }
        let goes_on = words == "{" || words == "where" || matches!(words, "public:" | "private:" | "protected:");
        let closes = words.starts_with(['}', ')', ']']) || words == "end" || words.starts_with("end ");
        if goes_on || (closes && words.ends_with(['{', ':', '('])) {
            last = number;
        } else {
            return if closes { number } else { last };
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(path: &str, text: &str) -> Vec<String> {
        scan_symbols(path, text).iter().map(|one| format!("{} {} {}-{}", one.kind, one.name, one.first, one.last)).collect()
    }

    #[test]
    fn every_pattern_compiles() {
        assert!(COMPILED.iter().all(|(language, patterns)| patterns.len() == language.patterns.len()));
    }

    #[test]
    fn declarations_are_found_with_their_line_ranges() {
        let rust = "use x;\n\npub(crate) async fn größe(\n    a: u8,\n) -> u8 {\n    if a > 1 {\n        a\n    }\n}\n\nstruct A;\nenum B {\n    C,\n}\nimpl A {\n    const fn new() -> Self {\n        A\n    }\n}\nmacro_rules! m {\n}\n";
        assert_eq!(named("a.rs", rust), ["fn größe 3-9", "struct A 11-11", "enum B 12-14", "fn new 16-18", "macro m 20-21"]);
        let python = "class A:\n    def one(self):\n        pass\n\n    async def two(self):\n        pass\n\nx = 1\ndef three(\n    a,\n):\n    return a\n";
        assert_eq!(named("a.py", python), ["class A 1-6", "def one 2-3", "def two 5-6", "def three 9-12"]);
        let script = "export default class Shop {\n  async load(id: string): Promise<void> {\n    if (id) {\n    }\n  }\n}\nexport const sum = (a, b) => a + b;\nfunction* gen() {\n}\n";
        assert_eq!(named("a.ts", script), ["class Shop 1-6", "function load 2-5", "function sum 7-7", "function gen 8-9"]);
        let go = "type T struct {\n\ta int\n}\n\nfunc (t *T) Do(a int) error {\n\treturn nil\n}\n";
        assert_eq!(named("a.go", go), ["type T 1-3", "func Do 5-7"]);
        let c = "#define MAX 3\nstruct point {\n    int x;\n};\nstatic int\nadd(int a, int b)\n{\n    return a + b;\n}\nint sub(int a);\nint mul(int a, int b) {\n    return a * b;\n}\n";
        assert_eq!(named("a.c", c), ["define MAX 1-1", "struct point 2-4", "function mul 11-13"]);
        let java = "public class A {\n    private static int run(String a) {\n        return 1;\n    }\n}\n";
        assert_eq!(named("A.java", java), ["class A 1-5", "function run 2-4"]);
        assert_eq!(named("a.rb", "class A\n  def ok?\n    1\n  end\nend\n"), ["class A 1-5", "def ok? 2-4"]);
        assert_eq!(named("a.kt", "fun String.greet(): Int {\n}\n"), ["fun greet 1-2"]);
        assert_eq!(named("a.sh", "build() {\n  make\n}\n"), ["function build 1-3"]);
        assert_eq!(named("a.txt", "fn main() {}\n"), [""; 0]);
    }

    #[test]
    fn generated_lines_and_keywords_are_skipped() {
        assert!(scan_symbols("a.js", &format!("function a() {{{}}}", "x".repeat(1000))).is_empty());
        assert!(scan_symbols("a.js", "  if (a) {\n  }\n  while (b) {\n  }\n").is_empty());
    }

    proptest::proptest! {
        #[test]
        fn declaration_ranges_are_within_the_file(text in "(fn a|class B|\\{|\\}|\\(|\n|\t|end|é| ){0,80}") {
            let lines = text.lines().count() as u32;
            for one in ["a.rs", "a.py", "a.ts", "a.rb"].iter().flat_map(|path| scan_symbols(path, &text)) {
                proptest::prop_assert!(one.first >= 1 && one.first <= one.last && one.last <= lines);
            }
        }
    }
}
