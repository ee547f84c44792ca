//! Recognizes files that may affect a check by their names: tests, configuration of builds and test runners, and
//! files named in the check's command and in its scripts. Recognizes changes to tests in other files by their lines.

use crate::protocol::{FileDiffs, path_words};

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

/// Texts that occur in tests and in their declarations.
const TEST_TEXTS: &[&str] = &[
    "#[test]",
    "#[cfg(test)]",
    "::test]",
    "::test(",
    "#[rstest",
    "proptest!",
    "assert",
    "def test_",
    "func Test",
    "@Test",
    "describe(",
    "expect(",
];

/// Texts with which a test is skipped.
const SKIP_TEXTS: &[&str] = &[
    "#[ignore",
    "it.skip",
    "test.skip",
    "describe.skip",
    "xit(",
    "xdescribe(",
    "mark.skip",
    "mark.xfail",
    "unittest.skip",
    "t.Skip(",
    "@Ignore",
    "@Disabled",
];

/// Returns whether a diff removes or changes a line of a test, or skips a test.
pub(super) fn weakens_tests(diff: &FileDiffs) -> bool {
    let has = |line: &str, texts: &[&str]| texts.iter().any(|text| line.contains(text));
    diff.to_string().lines().any(|line| match line.as_bytes().first() {
        Some(b'-') => !line.starts_with("--- ") && has(line, TEST_TEXTS),
        Some(b'+') => !line.starts_with("+++ ") && has(line, SKIP_TEXTS),
        _ => false,
    })
}

/// Returns whether the check may read the file at this workspace-relative path. `check` is the check's command, followed
/// by the content of the scripts that it mentions.
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

/// Returns whether the command or a script names the file or a directory that contains it.
fn is_named(check: &str, path: &str, name: &str) -> bool {
    path_words(check).any(|word| {
        let is_path = word == path || path.strip_prefix(word).is_some_and(|rest| rest.starts_with('/') && word.contains('/'));
        is_path || word == name || path.ends_with(&format!("/{word}")) || word.ends_with(&format!("/{path}"))
    })
}

#[cfg(test)]
mod tests {
    use super::{may_read, weakens_tests};
    use crate::protocol::FileDiffs;

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
        assert!(may_read("sh check.sh\n. ./helper.sh\ngrep -f verify/rules.txt x", "verify/rules.txt"));
        assert!(may_read("sh /home/me/project/check.sh", "check.sh"));
    }

    #[test]
    fn a_diff_that_removes_changes_or_skips_a_test_may_affect_the_check() {
        let diff = |lines: &str| FileDiffs::read(&format!("--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1,2 +1,2 @@\n a\n{lines}"));
        for lines in ["-    assert_eq!(two(), 2);\n+    two();\n", "-#[test]\n+\n", "-b\n+#[ignore]\n", "-b\n+    it.skip('x')\n"]
        {
            assert!(weakens_tests(&diff(lines)), "{lines}");
        }
        for lines in ["-fn two() -> u8 { 1 }\n+fn two() -> u8 { 2 }\n", "-b\n+#[test]\n", "-b\n+x.iter().skip(1)\n"] {
            assert!(!weakens_tests(&diff(lines)), "{lines}");
        }
    }
}
