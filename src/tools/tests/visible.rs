//! Tests of which files commands can see: a home directory with toolchains and credentials, symlinks that lead outside,
//! and sockets.

use super::*;
use crate::policy::{Bundle, Context, Enforcer, Layer, Sandbox, Scope};
use crate::protocol::{Mode, SandboxTier};
use crate::sys::sandbox::{Tier, probe};
use crate::tools::{Caches, GitOutside, HostCapabilities, RepositoryTrust, SystemFacts, Visible};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

/// Credential stores that commands in earlier versions were able to read.
const STORES: &[&str] = &[
    ".mozilla/firefox/x.default/logins.json",
    ".config/google-chrome/Default/Cookies",
    ".bash_history",
    ".zsh_history",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".config/github-copilot/hosts.json",
    ".config/fly/config.yml",
    ".config/unheard-of/token",
    ".thunderbird/x/key4.db",
    ".local/share/keyrings/login.keyring",
    ".local/share/unheard-of/session",
    ".cache/mozilla/x",
    ".cargo/credentials.toml",
    ".npmrc",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    "notes/plan.txt",
];

struct House {
    bench: Bench,
    home: PathBuf,
}

/// Creates a directory that is outside the directories private to each command.
fn directory() -> Option<tempfile::TempDir> {
    let beside = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let own = |place: &PathBuf| ["/tmp", "/var/tmp", "/run"].iter().any(|temporary| place.starts_with(temporary));
    let places = [Some(beside), std::env::home_dir(), Some(PathBuf::from("/var/lib"))];
    places.into_iter().flatten().filter(|place| !own(place)).find_map(|place| tempfile::tempdir_in(place).ok())
}

impl House {
    /// Creates a workspace inside a home directory. Returns `None` if there are no namespaces, or if nothing but
    /// temporary directories is writable.
    fn new() -> Option<Self> {
        let Some(directory) = directory() else {
            eprintln!("skipped: only temporary directories are writable here");
            return None;
        };
        let root = directory.path().canonicalize().unwrap();
        let home = root.join("user");
        fs::create_dir_all(home.join("src/ws")).unwrap();
        let settings = settings(home.join("src/ws"), home.clone());
        let mut house = Self { bench: Bench { _directory: directory, root, settings, sources: ToolSources::default() }, home };
        for store in STORES {
            house.file(store, "hidden-content");
        }
        house.file(".cargo/bin/tool", "seen-content");
        house.file(".cargo/registry/x", "seen-content");
        house.file(".cache/pip/x", "seen-content");
        let probed = probe(&Helper::default().program, std::slice::from_ref(&house.bench.settings.workspace), &house.bench.root);
        if probed.tier < Tier::Namespaces {
            eprintln!("skipped: no namespaces here");
            return None;
        }
        house.hold(&house.home.clone(), "", &|_| None);
        Some(house)
    }

    fn file(&self, name: &str, content: &str) {
        let path = self.home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Applies the sandbox of the built-in policy with these settings.
    fn hold(&mut self, home: &Path, terms: &str, variable: &dyn Fn(&str) -> Option<String>) {
        let roots = vec![self.bench.settings.workspace.clone()];
        let own = self.bench.root.join("config");
        let text = format!(
            "schema_version = 1\n[capabilities.\"File.Read\"]\n[capabilities.\"File.Write\"]\n[capabilities.\"Shell.Exec\"]\n{terms}"
        );
        let layer = Layer::new(Scope::User, Bundle::parse(&text, "policy.toml").unwrap());
        let context = Context {
            roots: roots.clone(),
            home: home.to_owned(),
            mode: Mode::Ask,
            sandbox: Sandbox::Present,
            own: vec![own.clone()],
            skills: Vec::new(),
        };
        let held = Enforcer::new(vec![layer], context).sandbox_requirements(&[], jiff::Timestamp::UNIX_EPOCH);
        let machine = SystemFacts { home, homes: &[], roots: &roots, own: &[&own], variable };
        let ground = HostCapabilities {
            tier: SandboxTier::Guarded,
            layers: Err("not here".to_owned()),
            caches: Caches::find(home, variable, &[home, &roots[0]]),
            git: GitOutside::default(),
            visible: Visible::find(&machine),
            trust: RepositoryTrust::Trusted,
            git_config: None,
        };
        self.bench.settings.command.sandbox = SandboxPolicy::new(held, ground);
    }

    fn output(&self, line: &str) -> String {
        self.bench.output("RunCommand", json!({ "command": line }))
    }
}

#[test]
fn commands_see_toolchains_but_no_credential_stores_in_a_home_directory() {
    let Some(house) = House::new() else { return };
    let home = house.home.display();
    let all = house.output(&format!("find {home} -type f -exec cat {{}} + ; ls -A {home}/.cache {home}/notes"));
    assert!(!all.contains("hidden-content"), "{all}");
    assert_eq!(all.matches("seen-content").count(), 3, "{all}");
    assert!(all.contains("cannot access") && !all.contains("mozilla"), "{all}");
    // Nothing can be written there either.
    house.output(&format!("echo x > {home}/.bashrc; mkdir {home}/new; rm -r {home}/.cargo"));
    assert!(
        !house.home.join(".bashrc").exists() && !house.home.join("new").exists() && house.home.join(".cargo/bin/tool").exists()
    );
}

#[test]
fn symlinks_do_not_give_access_outside_the_workspace() {
    let Some(house) = House::new() else { return };
    symlink(house.home.join("notes"), house.bench.path("link")).unwrap();
    symlink("../../notes/plan.txt", house.bench.path("file")).unwrap();
    house.bench.write("names", format!("{}\0", house.home.join("notes/plan.txt").display()));
    house.bench.write("inside", "in-the-workspace");
    let line =
        "cat link/plan.txt l*/*.txt file inside; grep -R content .; head < file; ls -L link; wc --files0-from=names; find -L .";
    let told = house.output(line);
    assert!(!told.contains("hidden-content") && told.contains("in-the-workspace"), "{told}");
    assert!(!told.contains("link/plan.txt\n./"), "{told}");
}

#[test]
fn paths_named_by_a_policy_are_readable_except_for_credentials() {
    let Some(mut house) = House::new() else { return };
    house.file("notes/.env", "x");
    let home = house.home.clone();
    house.hold(&home, "readable_paths = [\"~/notes\", \"~/.config\", \"~/.codex\"]", &|_| None);
    let told =
        house.output("cat ~/notes/plan.txt ../../notes/plan.txt; echo x > ../../notes/plan.txt; cat ../../.codex/auth.json");
    assert_eq!(told.matches("hidden-content").count(), 1, "{told}");
    assert_eq!(fs::read_to_string(home.join("notes/plan.txt")).unwrap(), "hidden-content");
}

#[test]
fn hidden_paths_are_offered_for_one_run() {
    let Some(house) = House::new() else { return };
    let result = house.bench.call("RunCommand", json!({"command": "cat ../../notes/plan.txt"}));
    let wanted = format!("reading `{}`", house.home.join("notes").display());
    assert_eq!(result.denied.iter().map(ToString::to_string).collect::<Vec<_>>(), [wanted]);
    let router = house.bench.router();
    let again = call("RunCommand", json!({"command": "cat ../../notes/plan.txt"}));
    let opened = block_on(router.plan_with_access(again, result.denied)).unwrap();
    let permit = Permit::for_test(opened.actions.clone());
    let again = block_on(router.run(opened, permit, context()));
    assert!(again.output_text.contains("hidden-content"), "{}", again.output_text);
}

#[test]
fn cargo_builds_with_the_users_toolchain() {
    let Some(mut house) = House::new() else { return };
    let home = std::env::var("HOME").map_or_else(|_| PathBuf::from("/"), PathBuf::from);
    if !home.join(".cargo/bin/cargo").exists() || !home.join(".rustup").is_dir() {
        return eprintln!("skipped: no cargo of rustup in {}", home.display());
    }
    house.hold(&home, "", &|name| std::env::var(name).ok());
    house.bench.write("Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n");
    house.bench.write("src/main.rs", "fn main() { println!(\"built\"); }\n");
    let told = house.output("cargo run --offline --quiet 2>&1");
    assert!(told.contains("built"), "{told}");
    assert!(house.output("ls -A ~").lines().all(|name| name != ".bashrc"), "the rest of the home directory is hidden");
}

#[test]
fn pyenv_python_runs_with_the_home_directory_hidden() {
    let Some(mut house) = House::new() else { return };
    let home = std::env::var("HOME").map_or_else(|_| PathBuf::from("/"), PathBuf::from);
    if !home.join(".pyenv/shims/python3").exists() {
        return eprintln!("skipped: no pyenv in {}", home.display());
    }
    house.hold(&home, "", &|name| std::env::var(name).ok());
    let told = house.output("~/.pyenv/shims/python3 -c 'print(6 * 7)' 2>&1 && ~/.pyenv/shims/python3 -m pip --version 2>&1");
    assert!(told.contains("42\n") && told.contains("pip "), "{told}");
}

#[test]
fn sockets_of_other_network_namespaces_are_unreachable() {
    let Some(house) = House::new() else { return };
    let serve = "use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Local => 'served', Listen => 1) or die; print \"ready\\n\"; \
                 close STDOUT; while (my $c = $s->accept) { print $c \"answered\\n\"; close $c }";
    let mut server = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "perl", "-e", serve])
        .current_dir(&house.bench.settings.workspace)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(server.stdout.as_mut().unwrap(), &mut said).unwrap();
    let ask = "perl -e 'use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die; print <$s>'";
    if said == "ready\n" {
        let told = house.output(&format!("{ask} served 2>&1"));
        assert!(!told.contains("answered"), "{told}");
        // A command can reach its own sockets.
        let again = format!("for n in $(seq 200); do {ask} own 2>/dev/null && break; sleep 0.05; done");
        let own = format!("({}) & {again}", serve_once("own"));
        let told = house.output(&own);
        assert!(told.contains("answered"), "{told}");
    } else {
        eprintln!("skipped: no other network namespace, or no perl");
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

fn serve_once(name: &str) -> String {
    format!(
        "perl -e 'use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Local => \"{name}\", Listen => 1) or die; my $c = $s->accept; \
         print $c \"answered\\n\"'"
    )
}
