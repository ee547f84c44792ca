//! Determines which package manager or script installed this program, and how to update it.

use super::release_index::Release;
use crate::sys::file;
use crate::text::quoted_line;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use url::Url;

/// Name of the npm package that starts the program. The names of the packages that contain the program itself have this
/// prefix.
const NPM_PACKAGE: &str = "aye-agent";
/// File that the shell installer creates to mark its directory.
const INSTALLER_MARK: &str = ".aye-installed";
/// File name of the shell installer in a release.
const INSTALLER: &str = "aye-installer.sh";
/// Maximum size, in bytes, of a package manager's record file.
const MAX_RECORD: u64 = 4 << 20;
/// Profile that cargo uses by default when installing.
const USUAL_PROFILE: &str = "release";

/// This program and how it was installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installation {
    /// Path of the program after resolving symlinks.
    pub program: PathBuf,
    pub method: InstallMethod,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InstallMethod {
    /// `cargo install`.
    Cargo(CargoInstall),
    /// Debian package.
    Deb,
    /// npm package, installed in this prefix or project directory.
    Npm {
        directory: PathBuf,
        is_global: bool,
    },
    /// Homebrew formula with this name.
    Homebrew {
        formula: String,
    },
    /// Shell installer, which installed the program in this directory.
    Installer {
        directory: PathBuf,
    },
    Unknown,
}

/// Installation by cargo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CargoInstall {
    root: PathBuf,
    /// Whether this is the root that cargo uses if `--root` is not given.
    is_usual_root: bool,
    /// Source in cargo's notation, such as `path+file:///…`, `git+https://…` or `registry+https://…`.
    source: String,
    profile: String,
}

/// Locations at which package managers record the files they installed.
#[derive(Debug, Clone)]
pub(crate) struct PackageRecords {
    /// Root directory of the file system.
    pub system: PathBuf,
    /// Directory to which cargo installs if `--root` is not given.
    pub cargo_root: Option<PathBuf>,
}

/// The part of `.crates2.json` that lists the programs installed by cargo.
#[derive(Deserialize)]
struct CargoRecord {
    installs: BTreeMap<String, CargoEntry>,
}

#[derive(Deserialize)]
struct CargoEntry {
    bins: Vec<String>,
    #[serde(default)]
    profile: Option<String>,
}

impl PackageRecords {
    /// Returns the locations used on this system.
    pub(crate) fn from_system(variable: impl Fn(&str) -> Option<String>) -> Self {
        let home = || variable("HOME").map(|home| PathBuf::from(home).join(".cargo"));
        let named = variable("CARGO_INSTALL_ROOT").or_else(|| variable("CARGO_HOME")).map(PathBuf::from);
        let root = named.or_else(home).map(|root| root.canonicalize().unwrap_or(root));
        Self { system: PathBuf::from("/"), cargo_root: root }
    }
}

impl Installation {
    /// Determines how the program at this path was installed, based on the path and the records of package managers.
    pub(crate) fn for_program(program: PathBuf, records: &PackageRecords) -> Self {
        let method = npm(&program)
            .or_else(|| homebrew(&program))
            .or_else(|| deb(&program, records))
            .or_else(|| cargo(&program, records))
            .or_else(|| installer(&program))
            .unwrap_or(InstallMethod::Unknown);
        Self { program, method }
    }

    /// Describes how the program was installed, as in `npm package in /usr/local`.
    pub(crate) fn describe(&self) -> String {
        match &self.method {
            InstallMethod::Cargo(install) => format!("cargo install, in {}", install.root.display()),
            InstallMethod::Deb => "Debian package".to_owned(),
            InstallMethod::Npm { directory, is_global: true } => format!("global npm package in {}", directory.display()),
            InstallMethod::Npm { directory, is_global: false } => format!("npm package in {}", directory.display()),
            InstallMethod::Homebrew { formula } => format!("Homebrew formula {formula}"),
            InstallMethod::Installer { directory } => format!("shell installer, in {}", directory.display()),
            InstallMethod::Unknown => format!("unknown, at {}", self.program.display()),
        }
    }
}

impl InstallMethod {
    /// Returns the name of the installation method, as used in JSON output.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Cargo(_) => "cargo",
            Self::Deb => "deb",
            Self::Npm { .. } => "npm",
            Self::Homebrew { .. } => "homebrew",
            Self::Installer { .. } => "installer",
            Self::Unknown => "unknown",
        }
    }

    /// Returns shell commands that update this installation. Returns no commands if the method is unknown, if a release
    /// is needed but not given, or if the release does not contain a suitable file.
    pub(crate) fn update_commands(&self, release: Option<&Release>) -> Vec<String> {
        match self {
            Self::Cargo(install) => install.update_commands(),
            Self::Deb => deb_commands(release).unwrap_or_default(),
            Self::Npm { directory, is_global } => {
                let global: &[&str] = if *is_global { &["--global"] } else { &[] };
                let package = format!("{NPM_PACKAGE}@latest");
                let directory = directory.display().to_string();
                vec![line(&[&["npm", "install"], global, &["--prefix", &directory, &package]].concat())]
            }
            Self::Homebrew { formula } => vec![line(&["brew", "upgrade", formula])],
            Self::Installer { directory } => installer_commands(release, directory).unwrap_or_default(),
            Self::Unknown => Vec::new(),
        }
    }
}

impl CargoInstall {
    fn update_commands(&self) -> Vec<String> {
        let mut commands = Vec::new();
        let mut words = vec!["cargo".to_owned(), "install".to_owned()];
        let mut add = |more: &[&str]| words.extend(more.iter().map(|&word| word.to_owned()));
        if let Some(directory) = self.source.strip_prefix("path+").and_then(directory_from_url) {
            let text = directory.display().to_string();
            if directory.join(".git").exists() {
                commands.push(line(&["git", "-C", &text, "pull"]));
            }
            add(&["--path", &text]);
        } else if let Some(mut repository) = self.source.strip_prefix("git+").and_then(|url| Url::parse(url).ok()) {
            let branch = repository.query_pairs().find(|(name, _)| name == "branch").map(|(_, branch)| branch.into_owned());
            repository.set_query(None);
            repository.set_fragment(None);
            add(&["--git", repository.as_str()]);
            if let Some(branch) = branch {
                add(&["--branch", &branch]);
            }
        } else {
            add(&["aye"]);
        }
        add(&["--locked"]);
        if self.profile != USUAL_PROFILE {
            add(&["--profile", &self.profile]);
        }
        if !self.is_usual_root {
            add(&["--root", &self.root.display().to_string()]);
        }
        commands.push(quoted_line(&words));
        commands
    }
}

fn line(words: &[&str]) -> String {
    quoted_line(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
}

fn directory_from_url(url: &str) -> Option<PathBuf> {
    Url::parse(url).ok()?.to_file_path().ok()
}

/// Recognizes a platform-specific npm package by its path, `…/node_modules/aye-agent-linux-x64/bin/aye`.
fn npm(program: &Path) -> Option<InstallMethod> {
    let package = program.parent()?.parent()?;
    let is_package = package.file_name()?.to_str()?.starts_with(NPM_PACKAGE) && package.parent()?.ends_with("node_modules");
    // Other package managers have their own store, which npm must not change.
    let is_of_npm = program.components().all(|part| ![".pnpm", ".bun", ".store"].iter().any(|name| part.as_os_str() == *name));
    if !is_package || !is_of_npm {
        return None;
    }
    let outermost = program.components().position(|part| part.as_os_str() == "node_modules")?;
    let base: PathBuf = program.components().take(outermost).collect();
    if base.ends_with("lib") && !base.join("package.json").exists() {
        let directory = base.parent()?.to_owned();
        return Some(InstallMethod::Npm { directory, is_global: true });
    }
    Some(InstallMethod::Npm { directory: base, is_global: false })
}

/// Recognizes a Homebrew keg by its path, `…/Cellar/FORMULA/VERSION/…`.
fn homebrew(program: &Path) -> Option<InstallMethod> {
    let mut parts = program.components().skip_while(|part| part.as_os_str() != "Cellar").skip(1);
    let Some(Component::Normal(formula)) = parts.next() else { return None };
    let formula = formula.to_str()?.to_owned();
    // A version and a file follow.
    parts.nth(1).is_some().then_some(InstallMethod::Homebrew { formula })
}

/// Looks up the program in the list of files installed by the Debian package `aye`.
fn deb(program: &Path, records: &PackageRecords) -> Option<InstallMethod> {
    let list = read(&records.system.join("var/lib/dpkg/info/aye.list"))?;
    let installed = Path::new("/").join(program.strip_prefix(&records.system).ok()?);
    list.lines().any(|path| Path::new(path) == installed).then_some(InstallMethod::Deb)
}

/// Looks up the program in cargo's record, which is stored next to the `bin` directory.
fn cargo(program: &Path, records: &PackageRecords) -> Option<InstallMethod> {
    let bin = program.parent().filter(|bin| bin.ends_with("bin"))?;
    let root = bin.parent()?;
    let name = program.file_name()?.to_str()?;
    let record: CargoRecord = serde_json::from_str(&read(&root.join(".crates2.json"))?).ok()?;
    let (package, entry) = record.installs.into_iter().find(|(_, entry)| entry.bins.iter().any(|bin| bin == name))?;
    // `aye 0.1.0 (registry+https://…)`
    let (_, source) = package.split_once(" (")?;
    Some(InstallMethod::Cargo(CargoInstall {
        root: root.to_owned(),
        is_usual_root: records.cargo_root.as_deref() == Some(root),
        source: source.strip_suffix(')').unwrap_or(source).to_owned(),
        profile: entry.profile.unwrap_or_else(|| USUAL_PROFILE.to_owned()),
    }))
}

fn installer(program: &Path) -> Option<InstallMethod> {
    let directory = program.parent()?;
    directory.join(INSTALLER_MARK).is_file().then(|| InstallMethod::Installer { directory: directory.to_owned() })
}

fn read(path: &Path) -> Option<String> {
    String::from_utf8(file::read(path, MAX_RECORD).ok()?).ok()
}

/// Returns the name that Debian uses for the architecture of this build.
fn deb_architecture() -> Option<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Some("amd64"),
        "aarch64" => Some("arm64"),
        _ => None,
    }
}

fn deb_commands(release: Option<&Release>) -> Option<Vec<String>> {
    let release = release?;
    let name = format!("aye_{}_{}.deb", release.version, deb_architecture()?);
    let mut commands = download_commands(release, &name)?;
    commands.push(line(&["sudo", "apt", "install", &format!("./{name}")]));
    Some(commands)
}

fn installer_commands(release: Option<&Release>, directory: &Path) -> Option<Vec<String>> {
    let mut commands = download_commands(release?, INSTALLER)?;
    commands.push(line(&["sh", INSTALLER, "--dir", &directory.display().to_string()]));
    Some(commands)
}

/// Returns commands that download a release file to the current directory and verify its checksum.
fn download_commands(release: &Release, name: &str) -> Option<Vec<String>> {
    let (file, url) = release.file(name)?;
    let checksum = if cfg!(target_os = "macos") { "shasum -a 256" } else { "sha256sum" };
    let check = format!("echo '{}  {}' | {checksum} --check", file.sha256, file.name);
    Some(vec![line(&["curl", "-fLO", &url]), check])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A simulated system in a temporary directory.
    struct System {
        directory: tempfile::TempDir,
    }

    impl System {
        fn new() -> Self {
            Self { directory: tempfile::tempdir().unwrap() }
        }

        fn path(&self, path: &str) -> PathBuf {
            self.directory.path().canonicalize().unwrap().join(path)
        }

        fn with(self, path: &str, content: &str) -> Self {
            let path = self.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
            self
        }

        fn installation(&self, program: &str) -> Installation {
            let records = PackageRecords { system: self.path(""), cargo_root: Some(self.path("home/.cargo")) };
            Installation::for_program(self.path(program), &records)
        }

        /// Returns the installation method and the update commands, in which `/` replaces the system's root directory.
        fn updated(&self, program: &str, release: Option<&Release>) -> (&'static str, Vec<String>) {
            let method = self.installation(program).method;
            let root = self.path("").display().to_string();
            let root = root.trim_end_matches('/');
            let commands = method.update_commands(release).into_iter().map(|command| command.replace(root, ""));
            (method.as_str(), commands.collect())
        }
    }

    fn crates(source: &str, profile: &str) -> String {
        let entry = serde_json::json!({"bins": ["aye"], "profile": profile, "target": "x", "rustc": "y"});
        let other = serde_json::json!({"bins": ["rg"], "profile": "release"});
        serde_json::json!({"installs": {"ripgrep 15.0.0 (registry+https://r.example/i)": other, format!("aye 0.1.0 ({source})"): entry}})
            .to_string()
    }

    #[test]
    fn cargo_updates_use_the_original_source() {
        for (root, source, profile, expected) in [
            ("home/.cargo", "path+file:///src/my%20aye", "release", vec!["cargo install --path '/src/my aye' --locked"]),
            (
                "home/.cargo",
                "git+https://git.example/aye?branch=next#0123",
                "dist",
                vec!["cargo install --git https://git.example/aye --branch next --locked --profile dist"],
            ),
            ("opt/rust", "registry+https://r.example/index", "release", vec!["cargo install aye --locked --root /opt/rust"]),
        ] {
            let system = System::new().with(&format!("{root}/.crates2.json"), &crates(source, profile));
            let found = system.updated(&format!("{root}/bin/aye"), None);
            assert_eq!(found, ("cargo", expected.into_iter().map(str::to_owned).collect()), "{source}");
        }
        // The source tree is a clone.
        let system = System::new().with("src/.git/HEAD", "");
        let source = format!("path+{}", Url::from_file_path(system.path("src")).unwrap());
        let system = system.with("home/.cargo/.crates2.json", &crates(&source, "release"));
        let (_, commands) = system.updated("home/.cargo/bin/aye", None);
        assert_eq!(commands, ["git -C /src pull", "cargo install --path /src --locked"]);
    }

    #[test]
    fn the_installation_method_is_unknown_if_no_package_record_lists_the_program() {
        for record in ["", "{", "{\"installs\": {}}", &crates("x", "release").replace("\"aye\"]", "\"other\"]")] {
            let system = System::new().with("home/.cargo/.crates2.json", record);
            assert_eq!(system.updated("home/.cargo/bin/aye", None).0, "unknown", "{record}");
        }
        let system = System::new().with("var/lib/dpkg/info/aye.list", "/.\n/usr/bin\n/usr/bin/aye-other\n");
        assert_eq!(system.updated("usr/bin/aye", None).0, "unknown");
    }

    #[test]
    fn a_debian_package_is_downloaded_checked_and_installed() {
        let Some(architecture) = deb_architecture() else { return };
        let system = System::new().with("var/lib/dpkg/info/aye.list", "/.\n/usr\n/usr/bin\n/usr/bin/aye\n");
        let name = format!("aye_0.2.0_{architecture}.deb");
        let (method, commands) = system.updated("usr/bin/aye", Some(&Release::for_test("0.2.0", &[&name])));
        let expected = [
            format!("curl -fLO https://dl.example/aye/{name}"),
            format!("echo '{}  {name}' | sha256sum --check", "0".repeat(64)),
            format!("sudo apt install ./{name}"),
        ];
        assert_eq!((method, &commands[..]), ("deb", &expected[..]));
        // A copy elsewhere does not belong to the package, and a release without the file has no command.
        assert_eq!(system.updated("home/aye", None).0, "unknown");
        assert!(system.updated("usr/bin/aye", Some(&Release::for_test("0.2.0", &[]))).1.is_empty());
        assert!(system.updated("usr/bin/aye", None).1.is_empty());
    }

    #[test]
    fn npm_and_homebrew_are_detected_by_path() {
        let nested = "lib/node_modules/aye-agent/node_modules/aye-agent-linux-x64/bin/aye";
        let flat = "work/node_modules/aye-agent-linux-x64/bin/aye";
        for (program, method, commands) in [
            (&*format!("usr/local/{nested}"), "npm", vec!["npm install --global --prefix /usr/local aye-agent@latest"]),
            (flat, "npm", vec!["npm install --prefix /work aye-agent@latest"]),
            ("opt/node_modules/.pnpm/aye-agent-linux-x64@1/node_modules/aye-agent-linux-x64/bin/aye", "unknown", vec![]),
            ("work/node_modules/other/bin/aye", "unknown", vec![]),
            ("home/linuxbrew/.linuxbrew/Cellar/aye/0.1.0/bin/aye", "homebrew", vec!["brew upgrade aye"]),
            ("home/Cellar/aye", "unknown", vec![]),
            ("work/target/debug/aye", "unknown", vec![]),
            ("aye", "unknown", vec![]),
        ] {
            let commands: Vec<String> = commands.into_iter().map(str::to_owned).collect();
            assert_eq!(System::new().updated(program, None), (method, commands), "{program}");
        }
    }

    #[test]
    fn installer_directories_are_detected_by_their_marker() {
        let system = System::new().with("home/my bin/.aye-installed", "0.1.0\n");
        let release = Release::for_test("0.2.0", &[INSTALLER]);
        let (method, commands) = system.updated("home/my bin/aye", Some(&release));
        let expected = [
            "curl -fLO https://dl.example/aye/aye-installer.sh".to_owned(),
            format!("echo '{}  aye-installer.sh' | sha256sum --check", "0".repeat(64)),
            "sh aye-installer.sh --dir '/home/my bin'".to_owned(),
        ];
        assert_eq!((method, &commands[..]), ("installer", &expected[..]));
        // A program that cargo installed over the packaged one belongs to cargo.
        let system =
            System::new().with("home/.local/bin/.aye-installed", "").with("home/.local/.crates2.json", &crates("x", "release"));
        assert_eq!(system.updated("home/.local/bin/aye", None).0, "cargo");
    }
}
