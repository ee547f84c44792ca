//! Recognizes files that may affect a check by their names: tests, configuration of builds and test runners, and
//! files named in the check's command.

/// Names of directories that contain tests or continuous integration settings.
const DIRECTORIES: &[&str] = &[
    "test",
    "tests",
    "__tests__",
    "__snapshots__",
    "spec",
    "specs",
    "testdata",
    "fixtures",
    "e2e",
    "workflows",
    ".circleci",
    ".buildkite",
    ".ci",
    ".cargo",
    ".config",
];

/// Names of files that configure a build or a test runner.
const FILES: &[&str] = &[
    "build.rs",
    "Cargo.toml",
    "Cargo.lock",
    "clippy.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    "package.json",
    "tsconfig.json",
    "deno.json",
    "conftest.py",
    "pytest.ini",
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    "noxfile.py",
    "Makefile",
    "makefile",
    "GNUmakefile",
    "CMakeLists.txt",
    "meson.build",
    "BUILD",
    "BUILD.bazel",
    "WORKSPACE",
    "justfile",
    "Justfile",
    "Taskfile.yml",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "phpunit.xml",
    "composer.json",
    "Gemfile",
    "Rakefile",
    ".rspec",
    "mix.exs",
    ".gitlab-ci.yml",
    "azure-pipelines.yml",
    "Jenkinsfile",
    ".travis.yml",
];

/// Names of configuration files up to the extension, as in `jest.config.js` and `.mocharc.yml`.
const STEMS: &[&str] =
    &["jest.config", "vitest.config", "vite.config", "playwright.config", "cypress.config", "karma.conf", ".mocharc"];

/// Returns whether the check may read the file at this workspace-relative path.
pub(super) fn may_read(check: &str, path: &str) -> bool {
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let Some(name) = parts.pop() else { return false };
    parts.iter().any(|part| DIRECTORIES.contains(part)) || is_by_name(name) || is_named(check, path, name)
}

fn is_by_name(name: &str) -> bool {
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    let lower = stem.to_ascii_lowercase();
    let is_test = lower == "test"
        || lower == "tests"
        || lower.starts_with("test_")
        || lower.ends_with("_test")
        || lower.ends_with("_tests")
        || lower.ends_with("_spec")
        || (stem.ends_with("Test") || stem.ends_with("Tests") || stem.ends_with("Spec"));
    let has_part = |part: &str| name.split('.').skip(1).any(|one| one == part);
    let is_configuration =
        STEMS.iter().any(|begin| name.strip_prefix(begin).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')));
    FILES.contains(&name) || is_test || has_part("test") || has_part("spec") || is_configuration
}

/// Returns whether the command names the file or a directory that contains it.
fn is_named(check: &str, path: &str, name: &str) -> bool {
    let words =
        check.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '|' | '&' | '(' | ')' | '=' | '<' | '>'));
    words.map(|word| word.trim_start_matches("./").trim_end_matches('/')).filter(|word| !word.is_empty()).any(|word| {
        let is_path = word == path || path.strip_prefix(word).is_some_and(|rest| rest.starts_with('/') && word.contains('/'));
        is_path || word == name || path.ends_with(&format!("/{word}"))
    })
}

#[cfg(test)]
mod tests {
    use super::may_read;

    #[test]
    fn tests_configuration_and_files_named_in_a_goal_check_may_affect_the_check() {
        for path in [
            "tests/a.rs",
            "crates/x/tests/data/in.json",
            "src/lib_test.go",
            "test_all.py",
            "src/app.test.ts",
            "src/AppTest.java",
            "spec/models/user_spec.rb",
            "Cargo.toml",
            "web/package.json",
            "jest.config.js",
            ".github/workflows/ci.yml",
            "Makefile",
            "src/parser/tests.rs",
        ] {
            assert!(may_read("cargo test", path), "{path}");
        }
        for path in ["src/main.rs", "README.md", "src/latest.rs", "src/contest.py", "docs/testing.md", "config.toml"] {
            assert!(!may_read("cargo test", path), "{path}");
        }
        assert!(may_read("sh ci/run.sh --fast", "ci/run.sh") && may_read("./check", "check"));
        assert!(may_read("python3 tools/verify", "tools/verify/rules.json"));
        assert!(!may_read("sh ci/run.sh", "src/run.rs"));
    }
}
