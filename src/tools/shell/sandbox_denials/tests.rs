use super::output_parser::{DenialReason, WantedAccess, denied_paths, reports_network_failure};
use super::*;
use crate::tools::tests::settings;
use std::fs;

/// Program output, with the paths that occur in it and the access that was attempted.
const PRINTED: &[(&str, &[(&str, WantedAccess)])] = &[
    ("bash: line 1: /opt/x: Read-only file system", &[("/opt/x", WantedAccess::Write)]),
    ("bash: line 1: ../some notes.txt: Read-only file system", &[("../some notes.txt", WantedAccess::Write)]),
    ("/home/me/run.sh: line 3: /opt/x: Permission denied", &[("/opt/x", WantedAccess::Write)]),
    ("cp: cannot create regular file '/opt/a b': Read-only file system", &[("/opt/a b", WantedAccess::Write)]),
    ("mkdir: cannot create directory ‘/opt/x’: Read-only file system", &[("/opt/x", WantedAccess::Directory)]),
    ("touch: cannot touch '/opt/x': Read-only file system", &[("/opt/x", WantedAccess::Write)]),
    ("rm: cannot remove '/opt/x': Read-only file system", &[("/opt/x", WantedAccess::Away)]),
    ("mv: cannot move 'a' to '/opt/a': Read-only file system", &[("a", WantedAccess::Away), ("/opt/a", WantedAccess::Away)]),
    ("tee: /opt/x: Read-only file system", &[("/opt/x", WantedAccess::Write)]),
    ("sed: couldn't open temporary file /opt/sedX1: Read-only file system", &[("/opt/sedX1", WantedAccess::Write)]),
    ("ln: failed to create symbolic link '/opt/l': Read-only file system", &[("/opt/l", WantedAccess::Write)]),
    ("tar: /opt/x: Cannot open: Read-only file system", &[("/opt/x", WantedAccess::Write)]),
    ("/usr/bin/ld: cannot open output file /opt/x: Read-only file system", &[("/opt/x", WantedAccess::Write)]),
    ("fatal: could not create work tree dir '/opt/x': Read-only file system", &[("/opt/x", WantedAccess::Write)]),
    (
        "error: could not lock config file /home/me/.gitconfig: Read-only file system",
        &[("/home/me/.gitconfig", WantedAccess::Write)],
    ),
    (
        "npm error rofs EROFS: read-only file system, mkdir '/usr/lib/node_modules/x'",
        &[("/usr/lib/node_modules/x", WantedAccess::Directory)],
    ),
    (
        "npm ERR! Error: EACCES: permission denied, rename '/opt/a' -> '/opt/b'",
        &[("/opt/a", WantedAccess::Away), ("/opt/b", WantedAccess::Away)],
    ),
    ("Error: EROFS: read-only file system, open '/opt/x'", &[("/opt/x", WantedAccess::Write)]),
    (
        "error An unexpected error occurred: \"EROFS: read-only file system, mkdir '/opt/x'\".",
        &[("/opt/x", WantedAccess::Directory)],
    ),
    (
        "ERROR: Could not install packages due to an OSError: [Errno 30] Read-only file system: '/opt/lib/x'",
        &[("/opt/lib/x", WantedAccess::Write)],
    ),
    ("PermissionError: [Errno 13] Permission denied: '/opt/x'", &[("/opt/x", WantedAccess::Write)]),
    (
        "error: failed to create directory `/opt/cargo/registry`\n\nCaused by:\n  Read-only file system (os error 30)",
        &[("/opt/cargo/registry", WantedAccess::Directory)],
    ),
    (
        "error: could not create temp file: '/opt/rustup/tmp/x': Read-only file system (os error 30)",
        &[("/opt/rustup/tmp/x", WantedAccess::Write)],
    ),
    ("go: could not create module cache: mkdir /opt/go: read-only file system", &[("/opt/go", WantedAccess::Directory)]),
    ("open /opt/go-build/00: read-only file system", &[("/opt/go-build/00", WantedAccess::Write)]),
    ("java.io.FileNotFoundException: /opt/x (Read-only file system)", &[("/opt/x", WantedAccess::Write)]),
    ("Read-only file system @ rb_sysopen - /opt/x (Errno::EROFS)", &[("/opt/x", WantedAccess::Write)]),
    ("PHP Warning: file_put_contents(/opt/x): Failed to open stream: Read-only file system", &[("/opt/x", WantedAccess::Write)]),
    (
        "CMake Error: file cannot create directory: /opt/inc. Maybe need administrative privileges.",
        &[("/opt/inc", WantedAccess::Directory)],
    ),
    (
        "CMake Error: file INSTALL cannot copy file \"/w/a\" to \"/opt/a\": Read-only file system.",
        &[("/opt/a", WantedAccess::Write)],
    ),
    ("Access to the path '/opt/x' is denied.", &[("/opt/x", WantedAccess::Write)]),
    ("all is well in /opt/x", &[]),
    ("Read-only file system", &[]),
];

#[test]
fn denied_paths_are_found_in_program_output() {
    for (text, expected) in PRINTED {
        let found = denied_paths(text);
        let found: Vec<(&str, WantedAccess)> = found.iter().map(|place| (place.given.as_str(), place.wanted)).collect();
        assert_eq!(found, *expected, "{text}");
    }
}

#[test]
fn only_network_errors_are_recognized_as_a_need_for_the_network() {
    let yes = [
        "curl: (6) Could not resolve host: example.com",
        "fatal: unable to access 'https://x/': Could not resolve host: x",
        "ping: x: Temporary failure in name resolution",
        "ssh: connect to host 10.0.0.1 port 22: Network is unreachable",
        "npm error code EAI_AGAIN",
        "Error: getaddrinfo ENOTFOUND registry.example.com",
        "dial tcp: lookup proxy.example.com: no such host",
        "error: failed to lookup address information: Name or service not known",
        "java.net.UnknownHostException: x",
    ];
    assert!(yes.iter().all(|text| reports_network_failure(text)));
    let no = ["curl: (7) Failed to connect to localhost port 1: Connection refused", "404 Not Found", ""];
    assert!(!no.iter().any(|text| reports_network_failure(text)));
}

/// A system that has a home directory with a workspace in it, other directories, and a sandbox.
struct Machine {
    _directory: tempfile::TempDir,
    root: PathBuf,
    settings: ToolSettings,
    confinement: Confinement,
}

impl Machine {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for name in ["home/ws/sub", "home/.hidden", "home/more", "other/data", "free"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("other/file"), "x").unwrap();
        std::os::unix::fs::symlink(root.join("other/data"), root.join("home/ws/out")).unwrap();
        let settings = settings(root.join("home/ws"), root.join("home"));
        let confinement = Confinement {
            writable: vec![root.join("free")],
            hidden: vec![root.join("home/.hidden")],
            ..Confinement::new(Backend::Namespaces, vec![root.join("home/ws")])
        };
        Self { _directory: directory, root, settings, confinement }
    }

    /// Examines the output. The test's root directory is removed from it first, because the root is inside a hidden
    /// directory.
    fn look(&self, line: &str, cwd: &Path, hosts: BlockedHosts) -> BlockedAccess {
        let (confinement, settings) = (&self.confinement, &self.settings);
        BlockedAccess::from_outputs(
            &[line],
            hosts,
            &SandboxedCommand { confinement, settings, cwd, never: &["/nobody", "/proc"] },
        )
    }

    /// Returns the access that is offered for a line of output. `@` stands for the test's root directory.
    fn opens(&self, line: &str) -> Vec<String> {
        let root = self.root.to_str().unwrap();
        let line = line.replace('@', root);
        let found = self.look(&line, &self.root.join("home/ws"), BlockedHosts::default());
        let short = |outside: SandboxAccess| match outside {
            SandboxAccess::Write { path } => path.replace(root, "@"),
            other => other.to_string(),
        };
        found.outside.into_iter().map(short).collect()
    }
}

#[test]
fn the_smallest_sufficient_access_is_offered() {
    let machine = Machine::new();
    let cases: [(&str, &[&str]); 17] = [
        ("touch: cannot touch '@/other/file': Read-only file system", &["@/other/file"]),
        ("touch: cannot touch '@/other/new': Read-only file system", &["@/other"]),
        ("mkdir: cannot create directory '@/other/data/a/b': Read-only file system", &["@/other/data"]),
        ("rm: cannot remove '@/other/file': Read-only file system", &["@/other"]),
        ("bash: line 1: out/x: Read-only file system", &["@/other/data"]),
        ("bash: line 1: ../../other/data/x: Read-only file system", &["@/other/data"]),
        // Paths too broad to allow as a whole are allowed by name.
        ("bash: line 1: ~/notes: Read-only file system", &["@/home/notes"]),
        ("mkdir: cannot create directory '@/home/.cache': Read-only file system", &["@/home/.cache/"]),
        ("open @/home/.cache/go/00: read-only file system", &["@/home/.cache/"]),
        ("rm: cannot remove '@/home/more': Read-only file system", &[]),
        // The sandbox does not block these paths.
        ("bash: line 1: sub/x: Permission denied", &[]),
        ("bash: line 1: @/free/x: Permission denied", &[]),
        ("bash: line 1: /nobody/x: Permission denied", &[]),
        ("bash: line 1: /proc/sysrq-trigger: Read-only file system", &[]),
        // No approval allows these paths.
        ("cat: @/home/.hidden/key: Permission denied", &[]),
        ("bash: line 1: @/home/.hidden/key: Read-only file system", &[]),
        // Not executable, which the sandbox cannot change.
        ("bash: line 1: @/other/file: Permission denied", &[]),
    ];
    for (line, expected) in cases {
        assert_eq!(machine.opens(line), expected, "{line}");
    }
}

#[test]
fn paths_blocked_by_the_policy_are_not_offered() {
    let mut machine = Machine::new();
    let shut = machine.root.join("other");
    machine.settings.paths.may_open = std::sync::Arc::new(move |path| !path.starts_with(&shut));
    assert!(machine.opens("touch: cannot touch '@/other/file': Read-only file system").is_empty());
}

#[test]
fn a_path_covers_its_subpaths_and_a_known_host_replaces_the_network() {
    let machine = Machine::new();
    let lines =
        "touch: cannot touch '@/other/data/x': Read-only file system\ntouch: cannot touch '@/other/x': Read-only file system";
    assert_eq!(machine.opens(lines), ["@/other"]);
    assert_eq!(machine.opens("curl: (6) Could not resolve host: x"), ["the network"]);
    let host = SandboxAccess::Host { host: "x".into(), port: 443 };
    let found = machine.look(
        "curl: (6) Could not resolve host: x",
        &machine.root,
        BlockedHosts { openable: vec![host.clone()], lines: vec!["x:443 (not allowed)".into()], ..BlockedHosts::default() },
    );
    assert_eq!(found.outside, [host]);
    assert!(found.note().unwrap().contains("blocked x:443"));
}

#[test]
fn a_connection_without_the_proxy_is_reported_whatever_the_output() {
    let machine = Machine::new();
    let hosts = || BlockedHosts { bypassed: vec!["192.0.2.1:443".into()], needs_network: true, ..BlockedHosts::default() };
    let found = machine.look("done", &machine.root, hosts());
    assert_eq!(found.outside, [SandboxAccess::Network]);
    let note = found.note().unwrap();
    assert!(note.contains("without aye's proxy: 192.0.2.1:443]") && note.contains("blocked the network"), "{note}");
    // The output that reports the same failure does not offer the network twice.
    let found = machine.look("curl: (6) Could not resolve host: x", &machine.root, hosts());
    assert_eq!(found.outside, [SandboxAccess::Network]);
}

#[test]
fn a_read_only_workspace_is_reported_and_write_access_is_not_offered() {
    let mut machine = Machine::new();
    machine.confinement.view = View::ReadOnly;
    let line = format!("bash: line 1: {}/home/ws/x: Read-only file system", machine.root.display());
    let found = machine.look(&line, &machine.root, BlockedHosts::default());
    assert_eq!(found.only_read, [machine.root.join("home/ws/x")]);
    assert!(found.outside.is_empty());
    assert!(found.note().unwrap().contains("read-only access to `"));
}

#[test]
fn protected_paths_of_a_writable_workspace_are_reported() {
    let mut machine = Machine::new();
    machine.confinement.read_only.push(machine.root.join("home/ws/.vscode"));
    let line = |name: &str| format!("bash: line 1: {}/home/ws/{name}: Read-only file system", machine.root.display());
    let found = machine.look(&line(".vscode/x"), &machine.root, BlockedHosts::default());
    assert_eq!(found.only_read, [machine.root.join("home/ws/.vscode/x")]);
    assert_eq!(machine.look(&line("x"), &machine.root, BlockedHosts::default()), BlockedAccess::default());
}

#[test]
fn paths_created_for_a_run_are_removed_if_unused() {
    let machine = Machine::new();
    let names = ["unused", "used", "unused-directory/", "used-directory/"].map(|name| machine.root.join("other").join(name));
    let opens = names.clone().map(|path| SandboxAccess::Write { path: path.to_str().unwrap().to_owned() });
    let opened = CreatedPaths::make(&opens);
    assert!(names.iter().all(|path| path.exists()));
    fs::write(&names[1], "x").unwrap();
    fs::write(names[3].join("x"), "x").unwrap();
    drop(opened);
    assert_eq!(names.map(|path| path.exists()), [false, true, false, true]);
}

#[test]
fn the_reason_for_a_denied_write_is_recognized() {
    assert_eq!(denied_paths("bash: line 1: /x: Read-only file system")[0].why, DenialReason::ReadOnly);
    assert_eq!(denied_paths("bash: line 1: /x: Permission denied")[0].why, DenialReason::NoAccess);
}

#[test]
fn hidden_paths_except_credentials_are_offered_for_reading() {
    let mut machine = Machine::new();
    let root = machine.root.clone();
    for name in ["home/notes/deep", "home/.aws", "home/seen"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    for name in ["home/notes/a.txt", "home/top.txt", "home/.aws/credentials", "home/seen/x", "other/Cargo.toml"] {
        fs::write(root.join(name), "x").unwrap();
    }
    let shut = root.join("home/.aws");
    machine.settings.paths.may_show = std::sync::Arc::new(move |path| !path.starts_with(&shut));
    machine.settings.command.sandbox.paths.visible.hidden = vec![root.join("home"), root.join("other")];
    machine.confinement.hidden.extend(machine.settings.command.sandbox.paths.visible.hidden.clone());
    machine.confinement.hidden.push(root.join("home/.aws"));
    machine.confinement.shown = vec![root.join("home/seen")];
    let read = |line: &str| machine.opens(line);
    let reading = |place: &str| vec![format!("reading `{}`", place.replace('@', root.to_str().unwrap()))];
    assert_eq!(read("cat: @/home/notes/a.txt: No such file or directory"), reading("@/home/notes"));
    assert_eq!(read("ls: cannot access '@/home/notes': No such file or directory"), reading("@/home/notes"));
    // The home directory is too broad to show for one file in it.
    assert_eq!(read("cat: @/home/top.txt: No such file or directory"), reading("@/home/top.txt"));
    let cargo = "error: failed to read `../../other/Cargo.toml`\n\nCaused by:\n  No such file or directory (os error 2)";
    assert_eq!(read(cargo), reading("@/other"));
    let python = "FileNotFoundError: [Errno 2] No such file or directory: '@/home/notes/a.txt'";
    assert_eq!(read(python), reading("@/home/notes"));
    assert_eq!(read("cp: cannot create regular file '@/home/notes/new': No such file or directory"), ["@/home/notes"]);
    for line in [
        "cat: @/home/.aws/credentials: No such file or directory",
        "ls: cannot access '@/home': No such file or directory",
        "cat: @/home/notes/none.txt: No such file or directory",
        "cat: @/home/seen/none: No such file or directory",
        "cat: @/home/ws/none: No such file or directory",
    ] {
        assert_eq!(read(line), [""; 0], "{line}");
    }
}

#[test]
fn a_command_denied_by_read_only_access_is_offered_a_run_with_write_access() {
    let confinement = Confinement::new(Backend::Namespaces, vec!["/w".into()]);
    let narrowed = |stderr: &str| {
        let guessed =
            BlockedAccess { outside: vec![SandboxAccess::Write { path: "/opt/x".to_owned() }], ..BlockedAccess::default() };
        guessed.detect_read_only(stderr, Path::new("/w/sub"), &confinement)
    };
    let denied = narrowed("touch: cannot touch 'a': Read-only file system");
    assert_eq!(denied.outside, [SandboxAccess::Write { path: "/w".to_owned() }]);
    let told = denied.note().unwrap();
    assert!(told.contains("read-only view of the workspace") && told.lines().count() == 1, "{told}");
    assert_eq!(narrowed("no such file").outside, [SandboxAccess::Write { path: "/opt/x".to_owned() }]);
}
