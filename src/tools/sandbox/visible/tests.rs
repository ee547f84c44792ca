use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

/// A home directory that contains a workspace, toolchains and credentials.
struct Home {
    _directory: tempfile::TempDir,
    root: PathBuf,
    path: String,
}

impl Home {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let home = Self { _directory: directory, path: String::new(), root };
        home.files(&[
            "src/ws/main.rs",
            ".cargo/bin/cargo",
            ".cargo/registry/index",
            ".cargo/credentials.toml",
            ".rustup/settings.toml",
            ".gradle/gradle.properties",
            ".gradle/caches/x",
            ".m2/repository/x",
            ".m2/settings.xml",
            ".mozilla/firefox/logins.json",
            ".ssh/id_ed25519",
            ".bash_history",
            "notes.txt",
        ]);
        home
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn files(&self, names: &[&str]) {
        for name in names {
            let path = self.at(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "x").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn find(&self) -> Visible {
        self.with(&|_| None)
    }

    fn with(&self, variable: &dyn Fn(&str) -> Option<String>) -> Visible {
        let variable = |name: &str| if name == "PATH" { Some(self.path.clone()) } else { variable(name) };
        let roots = [self.at("src/ws")];
        Visible::find(&SystemFacts {
            home: &self.root,
            homes: &[],
            roots: &roots,
            own: &[&self.at(".config/aye")],
            variable: &variable,
        })
    }

    fn is_seen(&self, visible: &Visible, name: &str) -> bool {
        let path = self.at(name);
        visible.shown.iter().any(|shown| path.starts_with(shown)) && !visible.masked.iter().any(|masked| path.starts_with(masked))
    }
}

#[test]
fn only_toolchains_are_visible_in_a_home_directory() {
    let home = Home::new();
    let visible = home.find();
    assert!(visible.hidden.iter().any(|hidden| home.root.starts_with(hidden)));
    for name in [".cargo/bin/cargo", ".cargo/registry/index", ".rustup/settings.toml", ".gradle/caches/x", ".m2/repository/x"] {
        assert!(home.is_seen(&visible, name), "{name}");
    }
    let hidden = [
        ".cargo/credentials.toml",
        ".gradle/gradle.properties",
        ".m2/settings.xml",
        ".mozilla/firefox/logins.json",
        ".ssh/id_ed25519",
        ".bash_history",
        "notes.txt",
    ];
    for name in hidden {
        assert!(!home.is_seen(&visible, name), "{name}");
    }
}

#[test]
fn toolchains_are_found_through_environment_variables() {
    let home = Home::new();
    home.files(&["own/cargo/bin/x", "own/cargo/credentials.toml", "own/gradle/caches/x", "own/gradle/gradle.properties"]);
    let visible = home.with(&|name| match name {
        "CARGO_HOME" => Some(home.at("own/cargo").display().to_string()),
        "GRADLE_USER_HOME" => Some(home.at("own/gradle").display().to_string()),
        // A variable does not make the home directory visible.
        "GOPATH" | "JAVA_HOME" => Some(home.root.display().to_string()),
        _ => None,
    });
    assert!(home.is_seen(&visible, "own/cargo/bin/x") && home.is_seen(&visible, "own/gradle/caches/x"));
    for name in ["own/cargo/credentials.toml", "own/gradle/gradle.properties", "notes.txt"] {
        assert!(!home.is_seen(&visible, name), "{name}");
    }
}

#[test]
fn settings_are_visible_only_without_credentials() {
    let home = Home::new();
    let seen = |text: &str| {
        fs::write(home.at(".cargo/config.toml"), text).unwrap();
        home.is_seen(&home.find(), ".cargo/config.toml")
    };
    assert!(seen("[build]\njobs = 2\n[source.crates-io]\nreplace-with = \"https://mirror.example/index\"\n"));
    for text in ["[registries.x]\ntoken = \"abc\"\n", "index = \"https://me:pass@host/\"\n", "[http]\nproxy = \"http://u@h\"\n"] {
        assert!(!seen(text), "{text}");
    }
}

#[test]
fn programs_in_path_are_visible_with_their_installation() {
    let mut home = Home::new();
    home.files(&[
        "tools/node/bin/node",
        "tools/node/lib/node_modules/npm/cli.js",
        ".fly/bin/flyctl",
        ".fly/config.yml",
        ".local/bin/plain",
        ".local/lib/python3/x.py",
        ".local/share/keyrings/login.keyring",
        ".local/share/app/versions/1/app",
        ".local/share/app/session.json",
        "bin/mine",
    ]);
    symlink(home.at(".local/share/app/versions/1/app"), home.at(".local/bin/app")).unwrap();
    symlink(home.at("notes.txt"), home.at(".local/bin/notes")).unwrap();
    fs::set_permissions(home.at("notes.txt"), fs::Permissions::from_mode(0o644)).unwrap();
    symlink("node", home.at("tools/current")).unwrap();
    let path = ["tools/current/bin", ".fly/bin", ".local/bin", "bin"].map(|name| home.at(name).display().to_string());
    home.path = path.join(":");
    let visible = home.find();
    let seen = [
        "tools/node/bin/node",
        "tools/node/lib/node_modules/npm/cli.js",
        ".fly/bin/flyctl",
        ".local/bin/plain",
        ".local/lib/python3/x.py",
        ".local/share/app/versions/1/app",
        "bin/mine",
    ];
    for name in seen {
        assert!(home.is_seen(&visible, name), "{name}");
    }
    assert!(visible.links.contains(&(home.at("tools/current"), PathBuf::from("node"))), "{:?}", visible.links);
    for name in [".fly/config.yml", ".local/share/keyrings/login.keyring", ".local/share/app/session.json", "notes.txt"] {
        assert!(!home.is_seen(&visible, name), "{name}");
    }
}

#[test]
fn a_home_directory_in_path_stays_hidden() {
    let mut home = Home::new();
    home.path = [home.root.clone(), home.root.parent().unwrap().to_owned()].map(|path| path.display().to_string()).join(":");
    assert!(!home.is_seen(&home.find(), "notes.txt"));
}

#[test]
fn paths_named_by_a_policy_are_visible_even_home_directories() {
    let home = Home::new();
    let mut visible = home.find();
    visible.grant(&home.at("notes.txt"));
    assert!(home.is_seen(&visible, "notes.txt") && !home.is_seen(&visible, ".bash_history"));
    visible.grant(&home.root);
    assert!(!visible.is_hidden_by_default(&home.at(".bash_history")));
}

#[test]
fn a_workspace_that_contains_the_home_directory_is_fully_visible() {
    let home = Home::new();
    let roots = [home.root.clone()];
    let visible = Visible::find(&SystemFacts { home: &home.root, homes: &[], roots: &roots, own: &[], variable: &|_| None });
    assert!(!visible.hidden.contains(&home.root), "{:?}", visible.hidden);
}

#[test]
fn only_the_git_directory_of_an_enclosing_repository_is_visible() {
    let home = Home::new();
    home.files(&["src/.git/HEAD", "src/Cargo.toml"]);
    let visible = home.find();
    assert_eq!(visible.around, [home.at("src")]);
    assert!(home.is_seen(&visible, "src/.git/HEAD") && !home.is_seen(&visible, "src/Cargo.toml"));
    // A home directory is not a project.
    home.files(&[".git/HEAD"]);
    fs::remove_dir_all(home.at("src/.git")).unwrap();
    assert!(home.find().around.is_empty());
}
