//! Tests that changing files that run code when a folder is opened needs approval in every mode, and that changing
//! files used in builds does not.

use super::*;
use crate::protocol::RunsWhen;

const OPENED: &[&str] = &[
    ".gitmodules",
    ".gitattributes",
    "_darcs/prefs/defaults",
    "rust-analyzer.toml",
    ".rust-analyzer.toml",
    "hie.yaml",
    ".kateproject",
    ".formatter.exs",
    ".sourcekit-lsp/config.json",
    ".perldb",
    ".swiplrc",
    "openocd.cfg",
    ".corepack.env",
    ".claude.json",
    "env/bin/activate",
    ".hg/hgrc",
    ".husky/pre-commit",
    ".githooks/pre-push",
    "lefthook.yml",
    ".pre-commit-config.yaml",
    "mcp.json",
    "opencode.json",
    ".roo/mcp.json",
    ".amazonq/mcp.json",
    ".kiro/settings/mcp.json",
    ".continue/config.yaml",
    ".windsurf/mcp_config.json",
    "CLAUDE.md",
    "packages/a/AGENTS.md",
    "x.code-workspace",
    ".zed/settings.json",
    ".nvim.lua",
    ".exrc",
    ".vimrc",
    ".dir-locals.el",
    "a.sublime-project",
    ".helix/languages.toml",
    ".devcontainer/devcontainer.json",
    ".devcontainer.json",
    ".gitpod.yml",
    ".env",
    "mise.toml",
    ".mise.toml",
    ".config/mise/config.toml",
    ".tool-versions",
    ".run/x.run.xml",
    ".classpath",
    ".settings/org.eclipse.jdt.apt.core.prefs",
    "omnisharp.json",
    ".cargo/config.toml",
    "sub/.cargo/config",
    "rust-toolchain.toml",
    ".npmrc",
    "pnpm-workspace.yaml",
    "app/global.json",
    ".yarnrc",
    ".yarnrc.yml",
    ".yarn/plugins/x.cjs",
    ".yarn/releases/yarn.cjs",
    ".pnp.cjs",
    ".pnpmfile.cjs",
    "bunfig.toml",
    "gradlew",
    "gradle/wrapper/gradle-wrapper.properties",
    "gradle.properties",
    "init.gradle",
    ".mvn/extensions.xml",
    ".bazelrc",
    "sitecustomize.py",
    "lib/x.pth",
    ".python-version",
    ".venv/bin/activate",
    ".irbrc",
    ".bundle/config",
    ".Rprofile",
    "x.Rproj",
    ".user.ini",
    "flake.nix",
    "shell.nix",
    ".gdbinit",
    ".lldbinit",
    ".inputrc",
    ".bashrc",
    ".zshrc",
    ".ssh/config",
    ".ripgreprc",
    ".terraformrc",
    ".github/copilot-instructions.md",
];
const BUILT: &[&str] = &[
    "Makefile",
    "package.json",
    "build.rs",
    "setup.py",
    "pyproject.toml",
    "CMakeLists.txt",
    "build.gradle",
    "tests/conftest.py",
    ".github/workflows/ci.yml",
    "Jenkinsfile",
    ".gitlab-ci.yml",
    "Dockerfile",
    "docker-compose.yml",
    "vite.config.ts",
    "Cargo.toml",
];
const NEITHER: &[&str] = &[
    "src/main.rs",
    "README.md",
    ".gitignore",
    ".editorconfig",
    ".nvmrc",
    "docs/makefile.md",
    "npmrc.md",
    "cargo/config.toml",
    "build/out.txt",
    "environment/x",
    ".github/CODEOWNERS",
];

fn in_mode(mode: Mode) -> Enforcer {
    let mut enforcer = built_in();
    enforcer.set_mode(mode);
    enforcer
}

fn write(path: &str) -> Vec<Action> {
    vec![Action::Write { target: target(path) }]
}

#[test]
fn files_that_run_code_when_the_folder_is_opened_need_approval_in_every_mode() {
    for mode in [Mode::Ask, Mode::AutoEdit, Mode::Auto] {
        let enforcer = in_mode(mode);
        for path in OPENED {
            for action in [Action::Write { target: target(path) }, Action::Delete { target: target(path) }] {
                let told = enforcer.explain(&[action], now());
                assert_eq!(told.verdict, VerdictKind::Ask, "{mode:?} {path}: {}", told.reason);
                assert!(told.reason.contains("as soon as the folder is opened"), "{path}: {}", told.reason);
            }
        }
    }
}

#[test]
fn code_running_names_match_in_every_spelling_at_any_depth_and_through_links() {
    let enforcer = in_mode(Mode::AutoEdit);
    for path in [
        ".NPMRC",
        "a/b/.NpmRc",
        ".n\u{200d}pmrc",
        ".npmrc. ",
        ".npmrc::$DATA",
        "．npmrc",
        "X.CODE-WORKSPACE",
        ".Cargo/CONFIG.toml",
    ] {
        let verdict = enforcer.explain(&write(path), now()).verdict;
        assert!(verdict == VerdictKind::Ask, "{path}: {verdict:?}");
    }
    let link = Target { given: ".npmrc".into(), real: Path::new(ROOT).join("settings.txt"), place: Place::File { bytes: 1 } };
    assert_eq!(enforcer.explain(&[Action::Write { target: link }], now()).verdict, VerdictKind::Ask);
    let led = Target { given: "plain.txt".into(), real: Path::new(ROOT).join(".npmrc"), place: Place::File { bytes: 1 } };
    assert_eq!(enforcer.explain(&[Action::Write { target: led }], now()).verdict, VerdictKind::Ask);
}

#[test]
fn build_files_and_plain_files_are_written_without_approval() {
    for mode in [Mode::AutoEdit, Mode::Auto] {
        let enforcer = in_mode(mode);
        for path in BUILT.iter().chain(NEITHER) {
            let told = enforcer.explain(&write(path), now());
            assert_eq!(told.verdict, VerdictKind::Allow, "{path}: {}", told.reason);
        }
    }
}

#[test]
fn only_a_rule_that_names_the_path_allows_a_file_that_runs_code() {
    let with = |rules: &str| {
        let text = format!("schema_version = 1\n[capabilities.\"File.Write\"]\nrequires_approval = false\n{rules}");
        enforcer(parsed(&text))
    };
    let rule = |paths: &str| format!("[[capabilities.\"File.Write\".rules]]\npaths = [\"{paths}\"]\ndecision = \"allow\"\n");
    assert_eq!(with("").explain(&write(".husky/pre-commit"), now()).verdict, VerdictKind::Ask);
    for wide in ["**", "${workspace}/**", "**/pre-commit", "**/.husky/**"] {
        assert_eq!(with(&rule(wide)).explain(&write(".husky/pre-commit"), now()).verdict, VerdictKind::Ask, "{wide}");
    }
    for named in [".husky", ".husky/**", ".husky/pre-commit"] {
        let told = with(&rule(named)).explain(&write(".husky/pre-commit"), now());
        assert_eq!(told.verdict, VerdictKind::Allow, "{named}: {}", told.reason);
    }
}

#[test]
fn files_that_run_code_are_never_offered_to_be_remembered() {
    let enforcer = built_in();
    let always = enforcer.always(&write(".npmrc"), now());
    assert!(always.offers.is_empty() && !always.never.is_empty(), "{always:?}");
}

#[test]
fn protected_paths_that_run_code_are_denied_in_every_mode() {
    for mode in [Mode::Ask, Mode::AutoEdit, Mode::Auto] {
        for path in
            [".git/hooks/pre-commit", ".vscode/tasks.json", ".mcp.json", ".envrc", ".claude/settings.json", ".aye/config.toml"]
        {
            assert_eq!(in_mode(mode).explain(&write(path), now()).verdict, VerdictKind::Deny, "{path}");
        }
    }
}

#[test]
fn workspace_directory_names_count_only_as_part_of_a_complete_entry() {
    let with_root = |root: &str, path: &str| {
        let reader = crate::policy::runs_code(&Path::new(root).join(path), &[PathBuf::from(root)]);
        reader.map(|found| found.when)
    };
    assert_eq!(with_root("/home/user/x/.cargo", "config.toml"), Some(RunsWhen::Opened));
    assert_eq!(with_root("/home/user/.devcontainer/x", "src/main.rs"), None);
    assert_eq!(with_root("/home/user/.venv/bin/project", "main.py"), None);
}
