//! Release files, which `packaging/release` creates and this machine installs.

use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Stand-in for aye. Packaging does not depend on the program, and the real program is large.
const PROGRAM: &str = r##"#!/bin/sh
case "$1" in
    --version) echo "aye VERSION (COMMIT, test)" ;;
    completions) echo "# completions for $2" ;;
    man) echo ".TH AYE 1" > "$3/aye.1" ;;
    *) echo "started with $*"; exit 7 ;;
esac
"##;

/// Returns the target that the installer expects on this machine, if the release script supports it.
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

/// Returns the commit of the source tree, or `None` outside a git repository.
fn commit() -> Option<String> {
    let output = Command::new("git").args(["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "HEAD"]).output().ok()?;
    let commit = String::from_utf8(output.stdout).ok()?;
    Some(commit.trim()[..].get(..12)?.to_owned())
}

/// Returns the stand-in for a program built from a commit.
fn stand_in(commit: &str) -> String {
    PROGRAM.replace("VERSION", env!("CARGO_PKG_VERSION")).replace("COMMIT", commit)
}

/// Release in its own directory.
struct Release {
    directory: tempfile::TempDir,
}

impl Release {
    /// Packs the program. Returns `None` if the script cannot run here.
    fn pack() -> Option<Self> {
        let target = target().filter(|_| has("python3") && has("cargo"))?;
        let directory = tempfile::tempdir().unwrap();
        let commit = commit().unwrap_or_else(|| "0123456789ab".to_owned());
        write_program(&directory.path().join("program"), &stand_in(&commit));
        let release = Self { directory };
        let program = release.directory.path().join("program").display().to_string();
        let output = release.script(&["pack", "--target", target, "--program", &program], None);
        assert!(output.status.success(), "{}", said(&output));
        Some(release)
    }

    /// Runs the release script for this release. Programs in `path` take precedence.
    fn script(&self, arguments: &[&str], path: Option<&Path>) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/release");
        let mut command = Command::new("python3");
        command.arg("-B").arg(script).args(arguments);
        if arguments[0] != "check" {
            command.args(["--base-url", "https://dl.example"]).arg("--out").arg(self.files());
        }
        command.env("SOURCE_DATE_EPOCH", "1").env("CARGO_NET_OFFLINE", "true").env_remove("AYE_RELEASE_SIGN");
        if let Some(path) = path {
            command.env("PATH", before_path(path));
        }
        command.output().unwrap()
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
    fn install(&self, into: &Path) -> Output {
        self.install_with(into, None, &["--from", self.files().to_str().unwrap()])
    }

    /// Runs the installer. Programs in `path` take precedence. The file `process` in `path` receives the process ID of
    /// the installer.
    fn install_with(&self, into: &Path, path: Option<&Path>, arguments: &[&str]) -> Output {
        let mut command = Command::new("sh");
        if let Some(path) = path {
            command.env("PATH", before_path(path));
            command.args(["-c", "echo $$ > \"$0\"; exec sh \"$@\""]).arg(path.join("process"));
        }
        command.arg(self.file("aye-installer.sh")).arg("--dir").arg(into).args(arguments).output().unwrap()
    }
}

fn write_program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns `PATH` with a directory prepended.
fn before_path(directory: &Path) -> String {
    format!("{}:{}", directory.display(), std::env::var("PATH").unwrap())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Returns the sorted names of the entries of a directory.
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
fn every_release_file_has_a_checksum() {
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
    let sbom: Value = serde_json::from_str(&read("aye-VERSION-TARGET.sbom.json")).unwrap();
    let names: Vec<&str> = sbom["components"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert!(names.contains(&"tokio") && names.contains(&"rustls") && !names.contains(&"proptest"), "{names:?}");
    let index: Value = serde_json::from_str(&read("latest.json")).unwrap();
    assert_eq!((&index["version"], &index["date"]), (&env!("CARGO_PKG_VERSION").into(), &"1970-01-01".into()));
    for file in index["files"].as_array().unwrap() {
        let (name, sum) = (file["name"].as_str().unwrap(), file["sha256"].as_str().unwrap());
        assert!(sums.contains(&format!("{sum}  {name}\n")), "{name}");
    }
    assert!(read("aye.rb").contains("url \"https://dl.example/aye-"), "{}", read("aye.rb"));
    // The same inputs produce the same bytes.
    let again = Release::pack().unwrap();
    let archive = |release: &Release| fs::read(release.file("aye-VERSION-TARGET.tar.gz")).unwrap();
    assert_eq!(archive(&release), archive(&again));
}

#[test]
fn a_program_of_another_version_or_commit_is_not_packed() {
    let Some(release) = Release::pack() else { return };
    let before = fs::read(release.file("SHA256SUMS")).unwrap();
    let program = release.directory.path().join("program");
    let pack = || release.script(&["pack", "--target", target().unwrap(), "--program", program.to_str().unwrap()], None);
    write_program(&program, &stand_in("0123456789ab").replace(env!("CARGO_PKG_VERSION"), "9.9.9"));
    let output = pack();
    assert!(!output.status.success() && said(&output).contains("but Cargo.toml has version"), "{}", said(&output));
    if commit().is_some() {
        write_program(&program, &stand_in("0123456789ab"));
        let output = pack();
        assert!(!output.status.success(), "{}", said(&output));
        assert!(said(&output).contains("was built from commit 0123456789ab, but the source tree is at"), "{}", said(&output));
        write_program(&program, &stand_in("").replace("(, test)", "(test)"));
        let output = pack();
        assert!(!output.status.success(), "{}", said(&output));
        assert!(said(&output).contains("does not name the commit that it was built from"), "{}", said(&output));
    }
    assert_eq!(fs::read(release.file("SHA256SUMS")).unwrap(), before, "nothing was written");
}

#[test]
fn the_installer_installs_the_program_and_replaces_an_old_version() {
    let Some(release) = Release::pack() else { return };
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("new bin");
    let output = release.install(&directory);
    assert!(output.status.success() && said(&output).contains("installed aye"), "{}", said(&output));
    fs::write(directory.join("aye"), "old").unwrap();
    assert!(release.install(&directory).status.success());
    let started = Command::new(directory.join("aye")).arg("x").output().unwrap();
    assert_eq!((started.status.code(), said(&started).trim()), (Some(7), "started with x"));
    assert_eq!(entries(&directory), [".aye-installed", "aye"], "nothing else is left");
}

#[test]
fn an_incomplete_or_missing_archive_leaves_the_old_program() {
    let Some(release) = Release::pack() else { return };
    let place = tempfile::tempdir().unwrap();
    let old = place.path().join("aye");
    fs::write(&old, "old").unwrap();
    let is_unchanged = || fs::read_to_string(&old).unwrap() == "old" && entries(place.path()) == ["aye"];
    // A truncated archive does not match its checksum.
    let archive = release.file("aye-VERSION-TARGET.tar.gz");
    let whole = fs::read(&archive).unwrap();
    fs::write(&archive, &whole[..whole.len() / 2]).unwrap();
    let output = release.install(place.path());
    assert!(!output.status.success() && is_unchanged(), "{}", said(&output));
    assert!(said(&output).contains("checksum") && said(&output).contains("nothing was installed"), "{}", said(&output));
    fs::remove_file(&archive).unwrap();
    let output = release.install(place.path());
    assert!(!output.status.success() && is_unchanged() && said(&output).contains("cannot read"), "{}", said(&output));
}

#[test]
fn debian_and_npm_packages_can_be_installed_from_local_files() {
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

#[test]
fn the_debian_package_is_installed_by_dpkg() {
    let Some(release) = Release::pack() else { return };
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    let debs = with_extension(&release.files(), "deb");
    let ([deb], true) = (&debs[..], has("dpkg") && is_root) else { return };
    let place = tempfile::tempdir().unwrap();
    let database = place.path().join("var/lib/dpkg");
    for directory in ["info", "updates"] {
        fs::create_dir_all(database.join(directory)).unwrap();
    }
    fs::write(database.join("status"), "").unwrap();
    // The target directory has no C library.
    let mut command = Command::new("dpkg");
    command.arg(format!("--root={}", place.path().display())).args([
        "--force-depends",
        "--force-bad-path",
        "--log=/dev/null",
        "--install",
    ]);
    let output = command.arg(deb).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let started = Command::new(place.path().join("usr/bin/aye")).arg("x").output().unwrap();
    assert_eq!(started.status.code(), Some(7), "{}", said(&started));
    // `aye update` looks for the program in this list.
    let list = fs::read_to_string(database.join("info/aye.list")).unwrap();
    assert!(list.lines().any(|path| path == "/usr/bin/aye"), "{list}");
}

/// Point in an installation: before, during or after the run of a program.
#[derive(Debug, Clone, Copy)]
enum Moment {
    Before(&'static str),
    During(&'static str),
    After(&'static str),
}

/// Writes a program that kills the installer at the given point.
fn write_killer(directory: &Path, moment: Moment) {
    let (Moment::Before(program) | Moment::During(program) | Moment::After(program)) = moment;
    let found = Command::new("sh").args(["-c", "command -v \"$0\"", program]).output().unwrap();
    let real = String::from_utf8(found.stdout).unwrap();
    let run = format!("{} \"$@\"", real.trim());
    let kill = format!("kill -9 \"$(cat '{}')\"", directory.join("process").display());
    let lines = match moment {
        Moment::Before(_) => kill,
        Moment::After(_) => format!("{run}\n{kill}"),
        // The file that is written last is truncated.
        Moment::During("tar") => format!("{run}\nfor file in \"$4\"/*/aye; do : > \"$file\"; done\n{kill}"),
        Moment::During(_) => format!("{run}\nfor file; do :; done\n: > \"$file\"\n{kill}"),
    };
    write_program(&directory.join(program), &format!("#!/bin/sh\n{lines}\n"));
}

#[test]
fn a_killed_installation_leaves_a_complete_program_and_can_be_repeated() {
    let Some(release) = Release::pack() else { return };
    let from = release.files().display().to_string();
    let moments = [
        Moment::Before("mktemp"),
        Moment::After("mktemp"),
        Moment::Before("cp"),
        Moment::During("cp"),
        Moment::After("cp"),
        Moment::After("sha256sum"),
        Moment::Before("tar"),
        Moment::During("tar"),
        Moment::After("tar"),
        Moment::After("chmod"),
        Moment::Before("sync"),
        Moment::After("sync"),
        Moment::Before("mv"),
        Moment::After("mv"),
    ];
    for moment in moments {
        let (place, tools) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let program = place.path().join("aye");
        fs::write(&program, "old").unwrap();
        write_killer(tools.path(), moment);
        let output = release.install_with(place.path(), Some(tools.path()), &["--from", &from]);
        assert_eq!(output.status.code(), None, "{moment:?}: {}", said(&output));
        let is_new = fs::read_to_string(&program).unwrap() != "old";
        assert_eq!(is_new, matches!(moment, Moment::After("mv")), "{moment:?}");
        if is_new {
            let started = Command::new(&program).arg("x").output().unwrap();
            assert_eq!(started.status.code(), Some(7), "{moment:?}");
        }
        // The next run completes the installation and removes leftover files.
        let again = release.install(place.path());
        assert!(again.status.success(), "{moment:?}: {}", said(&again));
        assert_eq!(entries(place.path()), [".aye-installed", "aye"], "{moment:?}");
        assert_eq!(Command::new(&program).arg("x").output().unwrap().status.code(), Some(7), "{moment:?}");
    }
}

#[test]
fn a_failed_or_interrupted_installation_keeps_only_the_old_program() {
    let Some(release) = Release::pack() else { return };
    let from = release.files().display().to_string();
    let (local, download): (&[&str], &[&str]) = (&["--from", &from], &[]);
    let half = "for file; do [ \"$last\" = -o ] && printf half > \"$file\"; last=\"$file\"; done";
    for (program, lines, arguments, message) in [
        ("mktemp", "exit 1", local, "cannot write to"),
        ("cp", "exit 1", local, "cannot read"),
        ("tar", "exit 2", local, "cannot unpack"),
        ("tar", "exit 0", local, ""),
        ("mv", "exit 1", local, "nothing was installed"),
        ("tar", "kill -TERM \"$(cat \"$(dirname \"$0\")/process\")\"", local, ""),
        ("sync", "kill -TERM \"$(cat \"$(dirname \"$0\")/process\")\"", local, ""),
        // The server is unreachable, the connection breaks, or the file is a different one.
        ("curl", "exit 7", download, "cannot download https://dl.example/aye-"),
        ("curl", &format!("{half}; exit 18"), download, "cannot download https://dl.example/aye-"),
        ("curl", &format!("{half}; exit 0"), download, "the checksum of aye-"),
    ] {
        let (place, tools) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(place.path().join("aye"), "old").unwrap();
        write_program(&tools.path().join(program), &format!("#!/bin/sh\n{lines}\n"));
        let output = release.install_with(place.path(), Some(tools.path()), arguments);
        assert!(!output.status.success() && said(&output).contains(message), "{program} {lines}: {}", said(&output));
        assert_eq!(entries(place.path()), ["aye"], "{program} {lines}");
        assert_eq!(fs::read_to_string(place.path().join("aye")).unwrap(), "old", "{program} {lines}");
    }
}

#[test]
fn the_archive_is_downloaded_over_https_only_and_then_installed() {
    let Some(release) = Release::pack() else { return };
    let (place, tools) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let copy = format!(
        "echo \"$*\" > '{0}/words'\nfor file; do [ \"$last\" = -o ] && cp '{1}'/*.tar.gz \"$file\"; last=\"$file\"; done",
        tools.path().display(),
        release.files().display()
    );
    write_program(&tools.path().join("curl"), &format!("#!/bin/sh\n{copy}\n:\n"));
    let output = release.install_with(place.path(), Some(tools.path()), &[]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(entries(place.path()), [".aye-installed", "aye"]);
    let words = fs::read_to_string(tools.path().join("words")).unwrap();
    assert!(words.contains("--proto =https --proto-redir =https") && words.contains("https://dl.example/aye-"), "{words}");
}

fn statement(release: &Release, name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(release.file(name)).unwrap()).unwrap()
}

#[test]
fn the_provenance_names_every_file_the_source_and_the_tools() {
    let Some(release) = Release::pack() else { return };
    let whole = statement(&release, "aye-VERSION.provenance.json");
    assert_eq!(whole["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(whole["predicateType"], "https://slsa.dev/provenance/v1");
    let mut files = entries(&release.files());
    files.retain(|name| name != "SHA256SUMS" && *name != format!("aye-{}.provenance.json", env!("CARGO_PKG_VERSION")));
    let sums = fs::read_to_string(release.file("SHA256SUMS")).unwrap();
    let subjects = whole["subject"].as_array().unwrap();
    let mut names: Vec<&str> = subjects.iter().map(|subject| subject["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, files);
    for subject in subjects {
        let (name, digest) = (subject["name"].as_str().unwrap(), subject["digest"]["sha256"].as_str().unwrap());
        assert!(sums.contains(&format!("{digest}  {name}\n")), "{name}");
    }
    let target = statement(&release, "aye-VERSION-TARGET.provenance.json");
    let build = &target["predicate"]["buildDefinition"];
    let commands = build["externalParameters"]["commands"].to_string();
    assert!(commands.contains("packaging/release pack --target"), "{commands}");
    let source = &build["resolvedDependencies"][0];
    if Path::new(env!("CARGO_MANIFEST_DIR")).join(".git").exists() && has("git") {
        assert_eq!(source["digest"]["gitCommit"].as_str().map(str::len), Some(40), "{source}");
        assert!(source["annotations"]["dirty"].is_boolean(), "{source}");
    }
    let tools = &target["predicate"]["runDetails"]["builder"]["version"];
    assert!(tools["rustc"].as_str().unwrap().starts_with("rustc 1.") && tools["cargo"].as_str().unwrap().starts_with("cargo 1."));
    // No path of this machine may appear.
    assert!(!target.to_string().contains(release.directory.path().to_str().unwrap()), "{target}");
}

#[test]
fn a_release_is_signed_completely_or_not_at_all() {
    let Some(release) = Release::pack() else { return };
    let signed = [format!("aye-{}.provenance.json", env!("CARGO_PKG_VERSION")), "SHA256SUMS".to_owned()];
    let signer = "sh -c 'sha256sum < \"$0\" > \"$0.sig\"'";
    let output = release.script(&["finish", "--sign", signer], None);
    assert!(output.status.success(), "{}", said(&output));
    for name in &signed {
        release.file(&format!("{name}.sig"));
    }
    for (command, message) in [
        ("false", "the signing command failed"),
        ("/nowhere/signer --key x", "cannot run the signing command `/nowhere/signer`"),
        ("true", "wrote no signature"),
        ("sh -c ': > \"$0.sig\"'", "wrote no signature"),
        ("sh -c 'echo x >> \"$0\"; echo s > \"$0.sig\"'", "changed aye-"),
        // The command fails for the second file.
        ("sh -c 'case \"$0\" in *SUMS) exit 3 ;; *) echo s > \"$0.sig\" ;; esac'", "for SHA256SUMS with exit code 3"),
    ] {
        let output = release.script(&["finish", "--sign", command], None);
        assert!(!output.status.success() && said(&output).contains(message), "{command}: {}", said(&output));
        assert!(said(&output).contains("nothing was signed"), "{command}: {}", said(&output));
        let left = entries(&release.files());
        assert!(left.iter().all(|name| !signed.contains(name)), "{command}: {left:?}");
        assert!(with_extension(&release.files(), "sig").is_empty(), "{command}: {left:?}");
    }
    assert!(release.script(&["finish"], None).status.success());
    // Packing again invalidates the signatures of the release.
    assert!(release.script(&["finish", "--sign", signer], None).status.success());
    let program = release.directory.path().join("program").display().to_string();
    let output = release.script(&["pack", "--more", "--target", target().unwrap(), "--program", &program], None);
    assert!(output.status.success(), "{}", said(&output));
    assert!(with_extension(&release.files(), "sig").is_empty());
    assert!(!release.files().join("SHA256SUMS").exists());
}

#[test]
fn a_target_that_this_machine_cannot_build_is_named_and_nothing_is_built() {
    let Some(release) = Release::pack() else { return };
    let tools = tempfile::tempdir().unwrap();
    let target = target().unwrap();
    // Toolchain with only the standard library of this machine, and a cargo that must not be started.
    let library = tools.path().join("root/lib/rustlib").join(target).join("lib");
    fs::create_dir_all(&library).unwrap();
    fs::write(library.join("libstd-0.rlib"), "").unwrap();
    let rustc = format!(
        "#!/bin/sh\ncase \"$1\" in --print) echo '{}' ;; *) echo 'host: {target}' ;; esac\n",
        tools.path().join("root").display()
    );
    write_program(&tools.path().join("rustc"), &rustc);
    write_program(&tools.path().join("cargo"), "#!/bin/sh\necho 'cargo was started' >&2\nexit 1\n");
    let before = entries(&release.files());
    let other = if target.contains("apple") { "x86_64-unknown-linux-gnu" } else { "x86_64-unknown-linux-musl" };
    for targets in [&["--target", other][..], &["--target", target, "--target", other], &["--target", other, "--skip-missing"]] {
        let output = release.script(&[&["build"], targets].concat(), Some(tools.path()));
        let told = said(&output);
        assert!(!output.status.success() && !told.contains("cargo was started"), "{targets:?}: {told}");
        let line = format!("cannot build for {other}: its standard library is not installed; run `rustup target add {other}`");
        assert!(told.contains(&line) && told.contains("nothing was built"), "{targets:?}: {told}");
    }
    let output = release.script(&["build", "--target", target, "--target", other, "--skip-missing"], Some(tools.path()));
    assert!(said(&output).contains("cargo was started") && said(&output).contains("nothing was packed"), "{}", said(&output));
    assert_eq!(entries(&release.files()), before);
    // `check` names every target that it skips.
    fs::remove_file(library.join("libstd-0.rlib")).unwrap();
    let output = release.script(&["check"], Some(tools.path()));
    let told = said(&output);
    assert!(output.status.success() && told.contains("checked 0 of 7 targets; 0 failed, 7 not checked"), "{told}");
    assert!(told.contains("x86_64-pc-windows-msvc: not checked, because its standard library is not installed"), "{told}");
}
