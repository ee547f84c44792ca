//! `.ayeignore`: files that no tool reads, finds or changes, regardless of who wrote the list.

use crate::support::{Output, Project};
use serde_json::{Value, json};

fn project() -> Project {
    Project::empty()
        .file(".ayeignore", "/private/\n*.sql\n!schema.sql\n")
        .file("private/notes.txt", "needle in private\n")
        .file("dump.sql", "needle in a dump\n")
        .file("schema.sql", "needle in a schema\n")
        .file("src/a.rs", "// needle in a source\n")
}

fn call(project: &Project, tool: &str, arguments: &Value) -> Output {
    project.aye(&["tool", "call", tool, "--json", "--yes", "--args", &arguments.to_string()])
}

#[test]
fn searches_and_listings_omit_excluded_files() {
    let project = project();
    let found = call(&project, "Grep", &json!({"pattern": "needle"})).exits(0).stdout;
    assert!(found.contains("src/a.rs") && found.contains("schema.sql"), "{found}");
    assert!(!found.contains("dump.sql") && !found.contains("private"), "{found}");
    let found = call(&project, "Glob", &json!({"pattern": "**/*"})).exits(0).stdout;
    assert!(found.contains("src/a.rs") && !found.contains("dump.sql") && !found.contains("notes.txt"), "{found}");
    let found = call(&project, "ListDirectory", &json!({"path": "."})).exits(0).stdout;
    assert!(found.contains("schema.sql") && !found.contains("dump.sql") && !found.contains("private"), "{found}");
}

#[test]
fn excluded_files_cannot_be_read_or_changed_and_the_error_names_the_reason() {
    let project = project();
    for (tool, arguments) in [
        ("ReadFile", json!({"path": "dump.sql"})),
        ("ReadFile", json!({"path": "private/notes.txt"})),
        ("WriteFile", json!({"path": "private/new.txt", "content": "x"})),
        ("WriteFile", json!({"path": "dump.sql", "content": "x"})),
        ("Delete", json!({"path": "dump.sql"})),
        ("ListDirectory", json!({"path": "private"})),
    ] {
        let told = call(&project, tool, &arguments);
        let text = format!("{}{}", told.stdout, told.stderr);
        assert!(told.code != 0 && text.contains("is excluded by .ayeignore"), "{tool} {arguments}: {} {text}", told.code);
        assert!(!text.contains("needle"), "{tool} {arguments}: {text}");
    }
    assert!(!project.exists("private/new.txt") && project.read("dump.sql").contains("needle"));
    call(&project, "ReadFile", &json!({"path": "schema.sql"})).exits(0);
}

#[test]
fn tools_cannot_change_the_ignore_file() {
    let project = project();
    let told = call(&project, "WriteFile", &json!({"path": ".ayeignore", "content": ""}));
    assert!(
        told.code != 0 && format!("{}{}", told.stdout, told.stderr).contains("excludes files from the tools"),
        "{}",
        told.stdout
    );
    assert!(project.read(".ayeignore").contains("/private/"));
}

#[test]
fn commands_that_name_an_excluded_file_need_approval() {
    let project = project();
    let told = project.aye(&["policy", "explain", "--json", "--", "cat dump.sql"]).exits(0).json();
    assert_eq!((&told["verdict"], &told["rule"]), (&json!("ask"), &json!(".ayeignore")), "{told}");
    let told = project.aye(&["policy", "explain", "--json", "--", "cat schema.sql"]).exits(0).json();
    assert_eq!(told["verdict"], "allow", "{told}");
}

#[test]
fn sandboxed_commands_cannot_read_excluded_files() {
    let project = Project::outside_tmp()
        .file(".ayeignore", "/private/\n*.sql\n!schema.sql\n")
        .file("private/notes.txt", "needle in private\n")
        .file("a/dump.sql", "needle in a dump\n")
        .file("schema.sql", "needle in a schema\n");
    let line = "cat private/notes.txt a/dump.sql; cat schema.sql; echo '' > .ayeignore; true";
    let told = call(&project, "RunCommand", &json!({"command": line}));
    if project.aye(&["doctor", "--json"]).json().to_string().contains("commands are not sandboxed") {
        println!("skipped: nothing holds a command here");
        return;
    }
    assert!(told.stdout.contains("needle in a schema"), "{}", told.stdout);
    assert!(!told.stdout.contains("needle in private") && !told.stdout.contains("needle in a dump"), "{}", told.stdout);
    assert!(project.read(".ayeignore").contains("/private/"));
}
