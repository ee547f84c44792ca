use super::super::Enforcer;
use super::*;
use crate::policy::{Bundle, Context, Layer, Sandbox, Scope};

const ROOT: &str = "/home/user/project";

fn context(mode: Mode) -> Context {
    Context {
        roots: vec![PathBuf::from(ROOT)],
        home: PathBuf::from("/home/user"),
        mode,
        sandbox: Sandbox::Present,
        own: vec![PathBuf::from("/home/user/.config/aye")],
        skills: Vec::new(),
    }
}

fn layer(scope: Scope, text: &str) -> Layer {
    let text = format!("schema_version = 1\n{text}");
    Layer::new(scope, Bundle::parse(&text, "policy.toml").unwrap_or_else(|error| panic!("{error}")))
}

fn held_in(mode: Mode, layers: Vec<Layer>) -> SandboxRequirements {
    Enforcer::new(layers, context(mode)).sandbox_requirements(&[], Timestamp::UNIX_EPOCH)
}

fn held(text: &str) -> SandboxRequirements {
    held_in(Mode::Ask, vec![layer(Scope::User, text)])
}

fn has(places: &[PathBuf], place: &str) -> bool {
    places.contains(&PathBuf::from(place))
}

const SHELL: &str = "[capabilities.\"Shell.Exec\"]\n";

#[test]
fn by_default_the_workspace_is_writable_except_for_protected_paths() {
    let held = held_in(Mode::Ask, vec![Layer::new(Scope::BuiltIn, Bundle::built_in().expect("parses"))]);
    assert_eq!(held.sandbox, SandboxSetting::WorkspaceWrite);
    assert!(held.is_whole());
    for name in PROTECTED {
        assert!(has(&held.read_only, &format!("{ROOT}/{name}")), "{name}");
    }
    assert!(has(&held.hidden, "/home/user/.ssh") && has(&held.hidden, "/home/user/.config/aye"));
    // Paths outside all writable paths need no entry.
    assert!(!has(&held.read_only, "/home/user/.bashrc"));
}

#[test]
fn plan_mode_has_no_writable_paths() {
    let held = held_in(Mode::Plan, vec![layer(Scope::User, &format!("{SHELL}writable_paths = [\"~/out\"]"))]);
    assert_eq!(held.sandbox, SandboxSetting::ReadOnly);
    assert!(held.written.is_empty() && held.writable.is_empty() && held.read_only.is_empty());
}

#[test]
fn commands_can_write_only_where_file_write_is_allowed() {
    let held = held(&format!(
        "{SHELL}[capabilities.\"File.Write\"]\nallowed_paths = [\"src\", \"docs/**\"]\nblocked_paths = [\"src/gen\", \"**/*.key\"]"
    ));
    assert_eq!(held.written, [format!("{ROOT}/docs"), format!("{ROOT}/src")].map(PathBuf::from));
    assert!(!held.is_whole());
    assert!(has(&held.read_only, "/home/user/project/src/gen"), "{:?}", held.read_only);
    assert_eq!(held.marks.protection_of(Path::new("/home/user/project/src/a.key"), "a.key"), Some(EntryProtection::ReadOnly));
    assert_eq!(held.marks.protection_of(Path::new("/home/user/project/src/a.rs"), "a.rs"), None);
    assert!(held.unheld.iter().any(|words| words.contains("*.key")), "{:?}", held.unheld);
}

#[test]
fn the_lists_of_all_layers_narrow_the_writable_paths() {
    let user = layer(Scope::User, &format!("{SHELL}[capabilities.\"File.Write\"]\nallowed_paths = [\"${{workspace}}\"]"));
    let project =
        layer(Scope::Project, "[capabilities.\"File.Write\"]\nallowed_paths = [\"src\"]\nblocked_paths = [\"src/vendor\"]");
    let held = held_in(Mode::Ask, vec![user, project]);
    assert_eq!(held.written, [PathBuf::from(ROOT).join("src")]);
    assert!(has(&held.read_only, "/home/user/project/src/vendor"));
}

#[test]
fn empty_lists_and_file_name_globs_make_no_path_writable() {
    for allowed in ["[]", "[\"**/*.rs\"]"] {
        let held = held(&format!("{SHELL}[capabilities.\"File.Write\"]\nallowed_paths = {allowed}"));
        assert!(held.written.is_empty(), "{allowed}: {:?}", held.written);
    }
    for allowed in ["[\"${workspace}\"]", "[\"**\"]", "[\"${workspace}/**\"]", "[\"/\"]", "[\"~\"]"] {
        let held = held(&format!("{SHELL}[capabilities.\"File.Write\"]\nallowed_paths = {allowed}"));
        assert!(held.is_whole(), "{allowed}: {:?}", held.written);
        assert!(held.unheld.is_empty(), "{allowed}: {:?}", held.unheld);
    }
}

#[test]
fn unreadable_paths_are_hidden() {
    let held = held(&format!(
        "{SHELL}[capabilities.\"File.Read\"]\nallowed_paths = [\"${{workspace}}\", \"~/.aws\"]\nblocked_paths = [\"secrets\", \"/srv/keys\", \"**/.env\"]\n\
         [[capabilities.\"File.Read\".rules]]\npaths = [\"private/**\"]\ndecision = \"deny\""
    ));
    assert!(has(&held.hidden, "/home/user/project/secrets") && has(&held.hidden, "/srv/keys"));
    assert!(has(&held.hidden, "/home/user/.ssh") && !has(&held.hidden, "/home/user/.aws"), "the user named it");
    assert_eq!(held.marks.protection_of(Path::new("/home/user/project/a/.env"), ".env"), Some(EntryProtection::Hidden));
    assert_eq!(held.marks.protection_of(Path::new("/home/user/project/private/a"), "a"), Some(EntryProtection::Hidden));
    assert_eq!(held.marks.protection_of(Path::new("/home/user/project/a/.ENVRC "), ".ENVRC "), Some(EntryProtection::ReadOnly));
}

#[test]
fn users_can_make_more_paths_writable_but_not_git_credentials_or_aye_files() {
    let held = held(&format!(
        "{SHELL}writable_paths = [\"~/out\", \"${{workspace}}/.vscode\", \"${{workspace}}/.git\", \"~/.ssh\", \"~/.config/aye\", \"~/g/*\"]"
    ));
    assert_eq!(held.writable, [PathBuf::from("/home/user/out")]);
    assert_eq!(held.reopened, [PathBuf::from(ROOT).join(".vscode")]);
    assert!(!has(&held.read_only, "/home/user/project/.vscode") && has(&held.read_only, "/home/user/project/.git"));
    assert!(has(&held.read_only_if_there, "/home/user/out/.git"));
    let project = layer(Scope::Project, &format!("{SHELL}writable_paths = [\"~/out\"]"));
    assert!(held_in(Mode::Ask, vec![layer(Scope::User, SHELL), project]).writable.is_empty());
}

#[test]
fn startup_files_are_read_only_in_a_home_directory_workspace() {
    let mut context = context(Mode::Ask);
    context.roots = vec![PathBuf::from("/home/user")];
    let held = Enforcer::new(vec![layer(Scope::User, SHELL)], context).sandbox_requirements(&[], Timestamp::UNIX_EPOCH);
    assert!(has(&held.read_only, "/home/user/.bashrc") && has(&held.read_only, "/home/user/.config/git"));
}

#[test]
fn credentials_in_other_home_directories_are_hidden() {
    let enforcer = Enforcer::new(vec![layer(Scope::User, SHELL)], context(Mode::Ask));
    let held = enforcer.sandbox_requirements(&[PathBuf::from("/home/other")], Timestamp::UNIX_EPOCH);
    assert!(has(&held.hidden, "/home/other/.ssh"));
}

#[test]
fn paths_outside_the_workspace_are_readable_if_the_user_lists_them() {
    let user = format!(
        "{SHELL}readable_paths = [\"~/other\", \"~/x/*.md\", \"~/.config/aye\"]\n\
         [capabilities.\"File.Read\"]\nallowed_paths = [\"${{workspace}}\", \"~/notes\", \"~/docs/**\", \"~/y/*.md\"]"
    );
    let held = held(&user);
    assert_eq!(held.readable, ["/home/user/docs", "/home/user/notes", "/home/user/other"].map(PathBuf::from));
    assert!(held.unheld.iter().any(|words| words.contains("readable_paths")), "{:?}", held.unheld);
    // Credentials below such a path stay hidden.
    assert!(has(&held.hidden, "/home/user/.ssh"));
    let project = layer(Scope::Project, &format!("{SHELL}readable_paths = [\"~/z\"]"));
    let narrowed = held_in(Mode::Ask, vec![layer(Scope::User, &user), project]);
    assert!(!has(&narrowed.readable, "/home/user/z") && has(&narrowed.readable, "/home/user/other"));
}

#[test]
fn readable_paths_saved_for_a_project_are_added() {
    let text = format!("schema_version = 1\n{SHELL}readable_paths = [\"~/lib\"]");
    let mine = Layer::new(Scope::Mine, Bundle::parse_rules(&text, "policy.toml").expect("parses"));
    let user = layer(Scope::User, &format!("{SHELL}readable_paths = [\"~/other\"]"));
    let held = held_in(Mode::Ask, vec![user, mine.clone()]);
    assert_eq!(held.readable, ["/home/user/lib", "/home/user/other"].map(PathBuf::from));
    let built_in = Layer::new(Scope::BuiltIn, Bundle::built_in().expect("parses"));
    assert_eq!(held_in(Mode::Ask, vec![built_in, mine]).readable, [PathBuf::from("/home/user/lib")]);
}
