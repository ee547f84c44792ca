//! The files of a release, made by `packaging/release` and installed from this machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A program in the place of aye: packing does not depend on what is packed, and the real one is large.
const PROGRAM: &str = r##"#!/bin/sh
case "$1" in
    --version) echo "aye VERSION (0123456789ab, test)" ;;
    completions) echo "# completions for $2" ;;
    man) echo ".TH AYE 1" > "$3/aye.1" ;;
    *) echo "started with $*"; exit 7 ;;
esac
"##;

/// The target that the installer expects on this machine, if the release script knows it.
fn target() -> Option<&'static str> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") if cfg!(target_env = "gnu") => Some("x86_64-unknown-linux-gnu"),
        ("linux", "aarch64") if cfg!(target_env = "gnu") => Some("aarch64-unknown-linux-gnu"),
        ("macos", "x86_64") => Some("x86_64-apple-darwin"),
        ("macos", "aarch64") => Some("aarch64-apple-darwin"),
        _ => None,
    }
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// A release in a directory of its own.
struct Release {
    directory: tempfile::TempDir,
}

impl Release {
    /// Packs the program; `None` where the script cannot run.
    fn pack() -> Option<Self> {
        let target = target().filter(|_| has("python3") && has("cargo"))?;
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("program");
        fs::write(&program, PROGRAM.replace("VERSION", env!("CARGO_PKG_VERSION"))).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let release = Self { directory };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/release");
        let out = release.files();
        let mut command = Command::new("python3");
        command.arg(script).args(["pack", "--target", target, "--base-url", "https://dl.example"]).env("SOURCE_DATE_EPOCH", "1");
        command.arg("--program").arg(&program).arg("--out").arg(&out).env("CARGO_NET_OFFLINE", "true");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(release)
    }

    fn files(&self) -> PathBuf {
        self.directory.path().join("files")
    }

    fn file(&self, name: &str) -> PathBuf {
        let path = self.files().join(name.replace("VERSION", env!("CARGO_PKG_VERSION")).replace("TARGET", target().unwrap()));
        assert!(path.is_file(), "{}", path.display());
        path
    }

    /// Runs the installer with the archives of the release.
    fn install(&self, into: &Path, path: Option<&str>) -> Output {
        let mut command = Command::new("sh");
        command.arg(self.file("aye-installer.sh")).arg("--dir").arg(into).arg("--from").arg(self.files());
        if let Some(path) = path {
            command.env("PATH", path);
        }
        command.output().unwrap()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The entries of a directory, by name.
fn entries(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Returns the paths of the files in `directory` with this extension.
fn with_extension(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let paths = entries(directory).into_iter().map(|name| directory.join(name));
    paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

#[test]
fn a_release_has_every_file_with_its_checksum() {
    let Some(release) = Release::pack() else { return };
    let sums = fs::read_to_string(release.file("SHA256SUMS")).unwrap();
    for name in ["aye-VERSION-TARGET.tar.gz", "aye-VERSION-TARGET.sbom.json", "aye-VERSION-TARGET.provenance.json", "aye.rb"] {
        let path = release.file(name);
        assert!(sums.contains(path.file_name().unwrap().to_str().unwrap()), "{name}: {sums}");
    }
    let checked = Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(release.files()).output();
    if let Ok(checked) = checked {
        assert!(checked.status.success(), "{}", said(&checked));
    }
    let read = |name: &str| fs::read_to_string(release.file(name)).unwrap();
    let sbom: serde_json::Value = serde_json::from_str(&read("aye-VERSION-TARGET.sbom.json")).unwrap();
    let names: Vec<&str> = sbom["components"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert!(names.contains(&"tokio") && names.contains(&"rustls") && !names.contains(&"proptest"), "{names:?}");
    let description: serde_json::Value = serde_json::from_str(&read("release.json")).unwrap();
    assert_eq!(description["version"], env!("CARGO_PKG_VERSION"));
    assert!(read("aye.rb").contains("url \"https://dl.example/aye-"), "{}", read("aye.rb"));
    // The same inputs give the same bytes.
    let again = Release::pack().unwrap();
    let archive = |release: &Release| fs::read(release.file("aye-VERSION-TARGET.tar.gz")).unwrap();
    assert_eq!(archive(&release), archive(&again));
}

#[test]
fn the_installer_puts_the_program_in_place_and_replaces_an_old_one() {
    let Some(release) = Release::pack() else { return };
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("new bin");
    let output = release.install(&directory, None);
    assert!(output.status.success() && said(&output).contains("installed aye"), "{}", said(&output));
    fs::write(directory.join("aye"), "old").unwrap();
    assert!(release.install(&directory, None).status.success());
    let started = Command::new(directory.join("aye")).arg("x").output().unwrap();
    assert_eq!((started.status.code(), said(&started).trim()), (Some(7), "started with x"));
    assert_eq!(entries(&directory), [".aye-installed", "aye"], "nothing else is left");
}

#[test]
fn an_installation_that_fails_or_is_interrupted_leaves_the_old_program() {
    let Some(release) = Release::pack() else { return };
    let place = tempfile::tempdir().unwrap();
    let old = place.path().join("aye");
    fs::write(&old, "old").unwrap();
    let is_unchanged = || fs::read_to_string(&old).unwrap() == "old" && entries(place.path()) == ["aye"];
    // `tar` is interrupted in the middle of its work: it has written a part of the program.
    let tools = tempfile::tempdir().unwrap();
    let tar = "#!/bin/sh\nkill -TERM $PPID\nexit 0\n";
    fs::write(tools.path().join("tar"), tar).unwrap();
    fs::set_permissions(tools.path().join("tar"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.path().display(), std::env::var("PATH").unwrap());
    let output = release.install(place.path(), Some(&path));
    assert!(!output.status.success() && is_unchanged(), "{}: {:?}", said(&output), entries(place.path()));
    // An archive that is cut off does not have its checksum.
    let archive = release.file("aye-VERSION-TARGET.tar.gz");
    let whole = fs::read(&archive).unwrap();
    fs::write(&archive, &whole[..whole.len() / 2]).unwrap();
    let output = release.install(place.path(), None);
    assert!(!output.status.success() && is_unchanged(), "{}", said(&output));
    assert!(said(&output).contains("checksum") && said(&output).contains("nothing was installed"), "{}", said(&output));
    fs::remove_file(&archive).unwrap();
    let output = release.install(place.path(), None);
    assert!(!output.status.success() && is_unchanged() && said(&output).contains("cannot read"), "{}", said(&output));
}

#[test]
fn the_debian_package_and_the_npm_package_are_installed_from_local_files() {
    let Some(release) = Release::pack() else { return };
    let place = tempfile::tempdir().unwrap();
    let debs = with_extension(&release.files(), "deb");
    if let ([deb], true) = (&debs[..], has("dpkg-deb")) {
        let unpacked = place.path().join("deb");
        let output = Command::new("dpkg-deb").arg("-x").arg(deb).arg(&unpacked).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        assert!(unpacked.join("usr/bin/aye").is_file() && unpacked.join("usr/share/man/man1/aye.1.gz").is_file());
        let told = Command::new("dpkg-deb").arg("-f").arg(deb).output().unwrap();
        assert!(said(&told).contains("Package: aye") && said(&told).contains("Depends: libc6 (>= 2."), "{}", said(&told));
    }
    if !has("npm") {
        return;
    }
    let packages = with_extension(&release.files(), "tgz");
    let prefix = place.path().join("npm");
    let mut command = Command::new("npm");
    command.args(["install", "--offline", "--no-audit", "--no-fund", "--prefix"]).arg(&prefix).args(&packages);
    let output = command.env("HOME", place.path()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let started = Command::new(prefix.join("node_modules/.bin/aye")).arg("x").output().unwrap();
    assert_eq!((started.status.code(), said(&started).trim()), (Some(7), "started with x"));
}
