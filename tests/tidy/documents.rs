//! Promises of `README.md`, `CHANGELOG.md` and the other files at the root of the repository.

use crate::source::{package, read, sources};
use std::fs;

/// Commands that are the complete setup.
const COMMANDS: [&str; 2] = ["cargo run --release -- demo", "cargo test"];

const TOP: &[&str] = &[
    ".cargo",
    ".ci",
    ".git",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
    "assets",
    "benches",
    "build.rs",
    "fuzz",
    "packaging",
    "clippy.toml",
    "docs",
    "rustfmt.toml",
    "src",
    "target",
    "tests",
    "themes",
];

/// Returns the lines inside code blocks.
fn code_lines(page: &str) -> Vec<&str> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if inside {
            lines.push(line.trim());
        }
    }
    lines
}

#[test]
fn the_demo_and_test_commands_occur_once_in_the_readme() {
    let page = read("README.md");
    for command in COMMANDS {
        let count = code_lines(&page).iter().filter(|line| **line == command).count();
        assert_eq!(count, 1, "`{command}` in the code blocks of README.md");
    }
}

#[test]
fn linked_images_and_pages_exist() {
    let pages = fs::read_dir(package().join("docs")).into_iter().flatten().flatten();
    let pages = pages.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "md"));
    let mut names: Vec<_> = pages.map(|entry| format!("docs/{}", entry.file_name().to_string_lossy())).collect();
    names.extend(["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].map(str::to_owned));
    for name in names {
        let page = read(&name);
        let directory = package().join(&name);
        let directory = directory.parent().unwrap_or(&directory).to_owned();
        for target in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap_or_default();
            let elsewhere = path.is_empty() || path.contains("://");
            assert!(elsewhere || directory.join(path).exists(), "{name} links to `{target}`, which is not there");
        }
    }
}

#[test]
fn the_changelog_starts_with_the_unreleased_section() {
    let page = read("CHANGELOG.md");
    let first = page.lines().find(|line| line.starts_with("## "));
    assert_eq!(first, Some("## [Unreleased]"));
}

#[test]
fn the_top_level_directory_matches_the_architecture_document() {
    let entries = fs::read_dir(package()).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let strange: Vec<_> = names.filter(|name| !TOP.contains(&name.as_str()) && !name.starts_with('.')).collect();
    assert!(strange.is_empty(), "the top of the tree has {strange:?}; see docs/ARCHITECTURE.md");
    for needed in ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md", "docs/ARCHITECTURE.md", ".ci/run"]
    {
        assert!(package().join(needed).exists(), "`{needed}` is missing");
    }
}

/// In the security document, words in backquotes with two or more underscores must be names of tests.
#[test]
fn tests_named_in_the_security_document_exist() {
    let page = read("docs/SECURITY.md");
    let looks_like_a_test = |word: &&str| {
        word.matches('_').count() > 1
            && word.chars().all(|letter| letter == '_' || letter.is_ascii_digit() || letter.is_ascii_lowercase())
    };
    let named: Vec<&str> = page.split('`').skip(1).step_by(2).filter(looks_like_a_test).collect();
    assert!(named.len() > 60, "{} tests are named", named.len());
    let all: Vec<_> = sources("src").into_iter().chain(sources("tests")).collect();
    // A name is either a test function or a line in a table of tests.
    let stands = |name: &str| {
        let (function, entry) = (format!("fn {name}("), format!("    {name},"));
        all.iter().any(|source| source.text.contains(&function) || source.text.lines().any(|line| line == entry))
    };
    let missing: Vec<_> = named.into_iter().filter(|name| !stands(name)).collect();
    assert!(missing.is_empty(), "docs/SECURITY.md names tests that are not there: {missing:#?}");
}

#[cfg(unix)]
#[test]
fn the_ci_script_is_executable() {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(package().join(".ci/run")).map(|metadata| metadata.permissions().mode()).unwrap_or(0);
    assert_ne!(mode & 0o111, 0, ".ci/run is not executable");
}
