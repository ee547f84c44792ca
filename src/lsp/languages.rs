//! Languages for which a server is supported, and the commands that start the servers.

use serde_json::{Value, json};
use std::path::Path;

/// Language, with the server that supports it.
#[derive(Debug)]
pub(crate) struct Language {
    /// Language name used in the settings, such as `rust` in `[lsp.rust]`.
    pub name: &'static str,
    /// File extensions of the language, each with the language identifier that the protocol uses for it.
    extensions: &'static [(&'static str, &'static str)],
    /// Server program and its arguments.
    pub command: &'static [&'static str],
    /// Environment variables to set for the server.
    pub environment: &'static [(&'static str, &'static str)],
    /// Whether the server reports when it has finished loading the project. Until then, its diagnostics are incomplete.
    pub reports_loading: bool,
}

/// All languages for which a server is supported.
pub(crate) static LANGUAGES: [Language; 5] = [
    Language {
        name: "rust",
        extensions: &[("rs", "rust")],
        command: &["rust-analyzer"],
        environment: &[],
        reports_loading: true,
    },
    Language {
        name: "go",
        extensions: &[("go", "go")],
        command: &["gopls"],
        environment: &[("GOTOOLCHAIN", "local"), ("GOFLAGS", "-mod=readonly"), ("GOPROXY", "off")],
        reports_loading: false,
    },
    Language {
        name: "python",
        extensions: &[("py", "python"), ("pyi", "python")],
        command: &["pyright-langserver", "--stdio"],
        environment: &[],
        reports_loading: false,
    },
    Language {
        name: "typescript",
        extensions: &[
            ("ts", "typescript"),
            ("mts", "typescript"),
            ("cts", "typescript"),
            ("tsx", "typescriptreact"),
            ("js", "javascript"),
            ("mjs", "javascript"),
            ("cjs", "javascript"),
            ("jsx", "javascriptreact"),
        ],
        command: &["typescript-language-server", "--stdio"],
        environment: &[],
        reports_loading: false,
    },
    Language {
        name: "c",
        extensions: &[
            ("c", "c"),
            ("h", "c"),
            ("cc", "cpp"),
            ("cpp", "cpp"),
            ("cxx", "cpp"),
            ("hh", "cpp"),
            ("hpp", "cpp"),
            ("hxx", "cpp"),
        ],
        command: &["clangd", "--background-index=false"],
        environment: &[],
        reports_loading: false,
    },
];

impl Language {
    /// Returns the protocol's language identifier for a file, or `None` if the file is in a different language.
    pub(super) fn id_of(&self, path: &Path) -> Option<&'static str> {
        let extension = path.extension()?.to_str()?;
        self.extensions.iter().find(|(known, _)| *known == extension).map(|(_, id)| *id)
    }

    /// Returns settings that keep the server from running programs in the project and from writing files.
    pub(super) fn settings(&self) -> Value {
        match self.name {
            "rust" => json!({
                "checkOnSave": false,
                "cachePriming": { "enable": false },
                "cargo": { "buildScripts": { "enable": false } },
                "procMacro": { "enable": false },
                "files": { "watcher": "server" },
            }),
            _ => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_extension_belongs_to_one_language() {
        let mut seen = std::collections::BTreeSet::new();
        for (extension, _) in LANGUAGES.iter().flat_map(|language| language.extensions) {
            assert!(seen.insert(extension), "{extension}");
        }
        assert_eq!(LANGUAGES[3].id_of(Path::new("/a/b.tsx")), Some("typescriptreact"));
        assert_eq!(LANGUAGES[0].id_of(Path::new("/a/rs")), None);
    }
}
