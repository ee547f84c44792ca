//! Plugin sources: git repositories and archives, which are fetched without running anything, verified, and pinned.

use crate::support::Project;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Runs git in a repository with an author identity. Returns its output.
fn git(repository: &Path, arguments: &[&str]) -> String {
    let fixed = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"];
    let output = Command::new("git")
        .args(fixed)
        .args(arguments)
        .current_dir(repository)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn commit(repository: &Path) -> String {
    git(repository, &["add", "--all"]);
    git(repository, &["commit", "--quiet", "--allow-empty", "-m", "change"]);
    git(repository, &["rev-parse", "HEAD"])
}

/// Creates a repository with one plugin at its root and another one in a folder.
fn repository(project: &Project) -> PathBuf {
    let root = project.directory("home").join("repository");
    write(&root, ".claude-plugin/plugin.json", r#"{"name": "team-tools", "version": "1"}"#);
    write(&root, "commands/fix.md", "Fix issue $1.\n");
    write(&root, "plugins/other/plugin.json", r#"{"name": "other"}"#);
    write(&root, "plugins/other/commands/look.md", "Look.\n");
    git(&root, &["init", "--quiet", "."]);
    root
}

fn installed(project: &Project) -> PathBuf {
    let folders = fs::read_dir(project.directory("data").join("plugins")).unwrap();
    let folders: Vec<PathBuf> = folders.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders[0].clone()
}

fn no_traces(project: &Project) {
    for path in ["config/plugins", "data/plugins"] {
        assert!(!project.directory(path).exists(), "{path}");
    }
}

#[test]
fn a_plugin_is_added_from_a_repository_pinned_to_its_commit_and_updated() {
    let project = Project::empty();
    let root = repository(&project);
    let first = commit(&root);
    git(&root, &["branch", "stable"]);
    let source = format!("{}#main", root.display());
    let added = project.aye(&["plugin", "add", &source, "--yes"]).exits(0);
    assert!(added.stdout.contains(&format!("commit       {first}\n")), "{}", added.stdout);
    let list = project.aye(&["plugin", "list", "--json"]).exits(0).json();
    assert_eq!((list["plugins"][0]["commit"].as_str(), list["plugins"][0]["source"].as_str()), (Some(&*first), Some(&*source)));
    assert!(!installed(&project).join(".git").exists());
    // Only commits count, not files of the working tree.
    write(&root, "commands/fix.md", "Not committed.\n");
    assert!(project.aye(&["plugin", "update", "team-tools", "--yes"]).exits(0).stdout.contains("same files"));
    let second = commit(&root);
    let plan = project.aye(&["plugin", "update", "team-tools"]).exits(2);
    assert!(plan.stdout.contains("-Fix issue $1.\n+Not committed.\n"), "{}", plan.stdout);
    project.aye(&["plugin", "update", "team-tools", "--yes"]).exits(0);
    assert_eq!(project.aye(&["plugin", "list", "--json"]).exits(0).json()["plugins"][0]["commit"], *second);
    // A commit ID always names the same commit.
    let pinned = format!("{}@{first}", root.display());
    project.aye(&["plugin", "add", &pinned, "--yes"]).exits(0);
    assert!(project.aye(&["plugin", "update", "team-tools", "--yes"]).exits(0).stdout.contains("same files"));
    assert_eq!(fs::read_to_string(installed(&project).join("commands/fix.md")).unwrap(), "Fix issue $1.\n");
    project.aye(&["plugin", "remove", "team-tools"]).exits(0);
    no_traces(&project);
    let other = project.aye(&["plugin", "add", &source, "--path", "plugins/other", "--yes"]).exits(0);
    assert!(other.stdout.contains("folder       plugins/other\n"), "{}", other.stdout);
    assert!(project.aye(&["plugin", "update", "other", "--yes"]).exits(0).stdout.contains("same files"));
    project.aye(&["plugin", "add", &source, "--path", "../x", "--yes"]).exits(2).says(&["`--path` must be a folder inside"]);
    project.aye(&["plugin", "add", &source, "--path", "missing", "--yes"]).exits(1).says(&["has no folder `missing`"]);
    // A bare repository has no working tree.
    let bare = project.directory("home").join("bare.git");
    git(&root, &["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    project.aye(&["plugin", "add", bare.to_str().unwrap(), "--yes"]).exits(0);
}

#[test]
fn fetching_a_repository_runs_nothing() {
    let project = Project::empty();
    let root = repository(&project);
    let mark = project.directory("home").join("mark");
    let touch = format!("touch {}", mark.display());
    for hook in ["post-checkout", "post-merge", "reference-transaction", "post-index-change", "pre-auto-gc"] {
        write(&root, &format!(".git/hooks/{hook}"), &format!("#!/bin/sh\n{touch}\n"));
    }
    write(&root, ".gitattributes", "* filter=evil diff=evil\n*.md export-ignore\n");
    commit(&root);
    // The user's git configuration has a filter, a file system monitor, a template with hooks and a credential helper.
    let template = project.directory("home").join("template");
    write(&template, "hooks/reference-transaction", &format!("#!/bin/sh\n{touch}\n"));
    let config = format!(
        "[filter \"evil\"]\n\tsmudge = {touch}\n\tclean = {touch}\n\tprocess = {touch}\n\trequired = true\n[core]\n\tfsmonitor = {touch}\n\
         [init]\n\ttemplateDir = {}\n[credential]\n\thelper = \"!{touch}\"\n[uploadpack]\n\tpackObjectsHook = {touch}\n",
        template.display()
    );
    fs::write(project.directory("home").join(".gitconfig"), config).unwrap();
    let source = format!("{}#main", root.display());
    project.aye(&["plugin", "add", &source, "--yes"]).exits(0);
    assert!(!mark.exists());
    assert_eq!(fs::read_to_string(installed(&project).join("commands/fix.md")).unwrap(), "Fix issue $1.\n");
}

#[test]
fn repositories_with_special_entries_and_invalid_addresses_are_rejected() {
    type Entry<'a> = (&'a dyn Fn(&Path), &'a str);
    let entries: [Entry<'_>; 3] = [
        (&|root| symlink("/etc/passwd", root.join("commands/x.md")).unwrap(), "`commands/x.md` is a symlink"),
        (
            &|root| {
                let other = root.parent().unwrap().join("other");
                fs::create_dir(&other).unwrap();
                git(&other, &["init", "--quiet", "."]);
                commit(&other);
                git(root, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.to_str().unwrap(), "sub"]);
            },
            "`sub` is a submodule",
        ),
        (&|root| fs::write(root.join("huge"), vec![0; 17 << 20]).unwrap(), "`huge` is larger than 16 MB"),
    ];
    for (change, why) in entries {
        let project = Project::empty();
        let root = repository(&project);
        change(&root);
        commit(&root);
        project.aye(&["plugin", "add", &format!("{}#main", root.display()), "--yes"]).exits(1).says(&[why]);
        no_traces(&project);
    }
    let project = Project::empty();
    let root = repository(&project);
    commit(&root);
    for (source, code, why) in [
        ("git@example.org:x/y", 1, "pass `--credentials`"),
        ("ssh://git@example.org/x", 1, "pass `--credentials`"),
        ("https://user:hush@example.org/x.git", 2, "the URL contains credentials"),
        ("http://example.org/x.git", 2, "is not encrypted"),
        ("file:///tmp/x", 2, "the scheme `file:` is not supported"),
        ("ext::sh -c evil", 2, "no such folder or archive"),
        ("https://-evil/x.git", 2, "the URL is not valid"),
        ("https://example.org/x.git@abcdef1", 2, "not a full commit ID"),
        ("https://example.org/x.git#--upload-pack=evil", 2, "is not the name of a branch"),
        ("https://example.org/x.git#a b", 2, "is not the name of a branch"),
        ("missing#main", 2, "No such file"),
        ("x.tar.gz", 2, "no such folder or archive"),
    ] {
        let told = project.aye(&["plugin", "add", "--yes", "--", source]).exits(code);
        assert!(told.stderr.contains(why) && !told.stderr.contains("hush"), "{source}: {}", told.stderr);
    }
    let missing = format!("{}#missing", root.display());
    project.aye(&["plugin", "add", &missing, "--yes"]).exits(1).says(&["git failed", "check the repository and the revision"]);
    no_traces(&project);
}

/// Returns an archive of these files in the format of `tar`.
fn tar(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, content.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Serves an archive at `/a.tar.gz`. `/start.zip` redirects to the archive, and all other paths redirect to a closed
/// port. Returns the URL of the server.
fn serve(archive: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let length = stream.read(&mut head).unwrap();
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            let answer = match head.split(' ').nth(1) {
                Some("/a.tar.gz") => format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", archive.len()),
                Some("/start.zip") => "HTTP/1.1 302 Found\r\nlocation: /a.tar.gz\r\ncontent-length: 0\r\n\r\n".to_owned(),
                _ => "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/x\r\ncontent-length: 0\r\n\r\n".to_owned(),
            };
            let body: &[u8] = if answer.contains("200") { &archive } else { b"" };
            let _ = stream.write_all(answer.as_bytes()).and_then(|()| stream.write_all(body));
        }
    });
    address
}

#[test]
fn a_plugin_is_added_from_an_archive_with_its_hash() {
    let files = [("team-1.0/plugin.json", r#"{"name": "team-tools"}"#), ("team-1.0/commands/fix.md", "Fix issue $1.\n")];
    let project = Project::empty().bytes("team.tar.gz", &gzip(&tar(&files)));
    let added = project.aye(&["plugin", "add", "team.tar.gz", "--yes"]).exits(0);
    let hash = Command::new("sha256sum").arg(project.path("team.tar.gz")).output().unwrap();
    let hash = String::from_utf8_lossy(&hash.stdout[..64]).into_owned();
    assert!(added.stdout.contains(&format!("SHA-256      {hash}\n")), "{}", added.stdout);
    let changed = [files[0], ("team-1.0/commands/fix.md", "Fix issue $1, with a test.\n")];
    let project = project.bytes("team.tar.gz", &gzip(&tar(&changed)));
    let plan = project.aye(&["plugin", "update", "team-tools"]).exits(2);
    assert!(plan.stdout.contains("+Fix issue $1, with a test.\n"), "{}", plan.stdout);
    project.aye(&["plugin", "remove", "team-tools"]).exits(0);
    no_traces(&project);
    let address = serve(gzip(&tar(&files)));
    project.aye(&["plugin", "add", &format!("{address}/start.zip"), "--yes"]).exits(0);
    assert!(project.aye(&["plugin", "update", "team-tools", "--yes"]).exits(0).stdout.contains("same files"));
    project.aye(&["plugin", "add", &format!("{address}/away.zip"), "--yes"]).exits(1).says(&["which is not encrypted"]);
}

#[test]
fn archives_without_a_plugin_are_rejected_without_a_trace() {
    let manifest = ("plugin.json", r#"{"name": "team-tools"}"#);
    let text = "x".repeat(17 << 20);
    for (name, bytes, why) in [
        ("a.tar.gz", gzip(&tar(&[manifest, ("a", ""), ("a", "")])), "`a` appears twice"),
        ("a.tar.gz", gzip(&tar(&[manifest, ("a", ""), ("A", "")])), "only in case"),
        ("a.tar", tar(&[("commands/fix.md", "x")]), "no plugin manifest"),
        ("a.tgz", gzip(&tar(&[manifest, ("a", &text)])), "larger than 16 MB"),
        ("a.zip", b"not a zip file".to_vec(), "not a `.tar.gz`, `.tar` or `.zip` archive"),
        ("a.tar.gz", gzip(&tar(&[manifest]))[..60].to_vec(), "cannot add a plugin"),
    ] {
        let project = Project::empty().bytes(name, &bytes);
        project.aye(&["plugin", "add", name, "--yes"]).exits(1).says(&[why]);
        no_traces(&project);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_plugin_change_killed_at_any_effect_leaves_the_old_or_the_new_plugin() {
    use crate::support::trace::{Fault, Point, trace};
    const MANIFEST: &str = ".claude-plugin/plugin.json";
    let old = [(MANIFEST, r#"{"name": "team-tools", "version": "1"}"#), ("commands/fix.md", "Fix.\n")];
    let new = [(MANIFEST, r#"{"name": "team-tools", "version": "2"}"#), ("commands/fix.md", "Fix it.\n")];
    let pack = |project: Project, files: &[(&str, &str)]| project.bytes("team.tar.gz", &gzip(&tar(files)));
    // Arguments, whether the plugin is installed before, and the versions that may exist afterwards.
    type Case<'a> = (&'a [&'a str], bool, [Option<&'a str>; 2]);
    let changes: [Case<'_>; 3] = [
        (&["plugin", "add", "team.tar.gz", "--yes"], false, [None, Some("2")]),
        (&["plugin", "update", "team-tools", "--yes"], true, [Some("1"), Some("2")]),
        (&["plugin", "remove", "team-tools"], true, [Some("1"), None]),
    ];
    for (arguments, is_installed, versions) in changes {
        let prepare = || {
            let mut project = pack(Project::empty(), &old);
            if is_installed {
                project.aye(&["plugin", "add", "team.tar.gz", "--yes"]).exits(0);
            }
            project = pack(project, &new);
            project
        };
        let roots = |project: &Project| ["config", "data"].map(|path| project.directory(path));
        let project = prepare();
        let effects = match trace(project.command(arguments), &roots(&project), None) {
            Ok(traced) => traced.effects.len(),
            Err(why) => return eprintln!("skipped: {why}"),
        };
        assert!(effects > 3, "{arguments:?}: {effects}");
        for effect in 1..=effects {
            let project = prepare();
            let point = Point { effect, fault: Fault::KilledBefore };
            let traced = trace(project.command(arguments), &roots(&project), Some(point)).unwrap();
            let list = project.aye(&["plugin", "list", "--json"]).exits(0).json();
            assert_eq!(list["problems"], serde_json::json!([]), "{:?}", traced.hit);
            let version = list["plugins"][0]["version"].as_str();
            assert!(versions.contains(&version), "{arguments:?}, {:?}: {list}", traced.hit);
            assert!(list["plugins"][0]["change"].is_null(), "{arguments:?}, {:?}: {list}", traced.hit);
            if version.is_some() {
                project.aye(&["plugin", "remove", "team-tools"]).exits(0);
            } else {
                project.aye(&["plugin", "add", "team.tar.gz", "--yes"]).exits(0);
                project.aye(&["plugin", "remove", "team-tools"]).exits(0);
            }
            no_traces(&project);
        }
    }
}
