//! ApplyPatch in the built binary: the shared scenarios, and disk errors.

use crate::support::{Project, shared};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

type Files = BTreeMap<String, Vec<u8>>;

fn files(root: &Path) -> Files {
    let mut found = Files::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(root).unwrap().display().to_string(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
fn every_patch_scenario_has_the_expected_result() {
    let scenarios = shared!("fixtures/apply_patch/scenarios");
    let index = fs::read_to_string(scenarios.join("index.jsonl")).unwrap();
    for line in index.lines() {
        let scenario: Value = serde_json::from_str(line).unwrap();
        let directory = scenarios.join(scenario["name"].as_str().unwrap());
        let before = files(&directory.join("input"));
        let mut project = Project::empty();
        for (name, content) in &before {
            project = project.bytes(name, content);
        }
        let succeeds = scenario["succeeds"] == true;
        let arguments = json!({"patch": fs::read_to_string(directory.join("patch.txt")).unwrap()}).to_string();
        fs::write(project.directory("home").join("args.json"), arguments).unwrap();
        let arguments = format!("@{}", project.directory("home").join("args.json").display());
        let words = ["tool", "call", "ApplyPatch", "--args", &arguments, "--yes", "--json"];
        let result = project.aye(&words).exits(i32::from(!succeeds)).json();
        assert_eq!(result["error"].is_object(), !succeeds, "{scenario}: {result}");
        // A patch is applied completely or not at all, regardless of leftover files of other tools.
        let expected = if succeeds { files(&directory.join("expected")) } else { before };
        assert_eq!(files(&project.path("")), expected, "{scenario}: {result}");
    }
}

fn project() -> Project {
    Project::empty().file("a.txt", "one\n").file("shut/b.txt", "one\n").file("z.txt", "one\n")
}

fn arguments() -> String {
    let changed = |name: &str| format!("*** Update File: {name}\n@@\n-one\n+two\n");
    let body = ["a.txt", "shut/b.txt", "z.txt"].map(changed).concat();
    json!({"patch": format!("*** Begin Patch\n*** Add File: new/deep.txt\n+x\n{body}*** End Patch\n")}).to_string()
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_all_files_of_a_patch_unchanged() {
    use std::process::Command;
    let possible = Command::new("unshare").args(["-Urm", "true"]).status().is_ok_and(|status| status.success());
    if !possible {
        println!("skipped: this system lets nobody mount a disk of his own");
        return;
    }
    let project = project();
    let large = "x".repeat(200 * 1024);
    let body = format!(
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** Add File: shut/1\n+{large}\n*** Add File: shut/2\n+{large}\n*** End Patch\n"
    );
    fs::write(project.path("args.json"), json!({"patch": body}).to_string()).unwrap();
    let append = json!({"path": "shut/c.txt", "content": large}).to_string();
    fs::write(project.path("append.json"), append).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=256k none shut; echo one > shut/c.txt; \
         '{0}' tool call ApplyPatch --yes --args @args.json >>said 2>&1; echo \"code $?\" >>said; ls -A shut >>left; \
         head -c 100000 /dev/zero > shut/filler; \
         '{0}' tool call AppendFile --yes --args @append.json >>said 2>&1; echo \"code $?\" >>said; cat shut/c.txt >>left",
        env!("CARGO_BIN_EXE_aye")
    );
    let mut shell = Command::new("unshare");
    shell.args(["-Urm", "bash", "-c", &script]).current_dir(project.path("")).env_clear().envs(project.environment());
    assert!(shell.status().unwrap().success());
    let said = project.read("said");
    assert_eq!(said.matches("code 1").count(), 2, "{said}");
    assert_eq!(said.to_lowercase().matches("no space").count(), 2, "{said}");
    assert_eq!(project.read("left"), "c.txt\none\n", "something is left on the full disk\n{said}");
    assert_eq!(project.read("a.txt"), "one\n");
}

#[cfg(target_os = "linux")]
#[test]
fn a_read_only_directory_aborts_the_whole_patch() {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;
    let project = project();
    fs::set_permissions(project.path("shut"), fs::Permissions::from_mode(0o555)).unwrap();
    let whole = project.path("").parent().unwrap().to_owned();
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let root = is_root();
    if root && !Command::new("chown").args(["-R", "65534:65534"]).arg(&whole).status().is_ok_and(|status| status.success()) {
        println!("skipped: nothing is shut for root, and it cannot be another");
        return;
    }
    let mut command = if root { Command::new("setpriv") } else { Command::new(env!("CARGO_BIN_EXE_aye")) };
    if root {
        command.args(nobody).arg(env!("CARGO_BIN_EXE_aye"));
    }
    let arguments = arguments();
    command.args(["tool", "call", "ApplyPatch", "--yes", "--json", "--args", &arguments]);
    command.current_dir(project.path("")).env_clear().envs(project.environment());
    let Ok(output) = command.output() else {
        println!("skipped: there is no setpriv");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    fs::set_permissions(project.path("shut"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("PERMISSION_DENIED") && said.contains("No file of the patch was changed"), "{said}");
    let expected = ["a.txt", "shut/b.txt", "z.txt"].map(|name| (name.to_owned(), b"one\n".to_vec()));
    assert_eq!(files(&project.path("")), Files::from(expected));
    assert!(!project.exists("new"), "a directory that was made for it is left");
}

#[cfg(target_os = "linux")]
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}
