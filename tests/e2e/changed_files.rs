//! Files that change on disk while their approval is open: the prompt reports the change and its reversal immediately.

use crate::support::{Answer, Project, Server, Terminal, texts};
use serde_json::{Value, json};
use std::time::Duration;

const BEFORE: &str = "fn main() {\n    let x = 1;\n}\n";
const MARK: &str = texts::CHANGED_ON_DISK;

fn edit() -> Value {
    json!({"path": "src/main.rs", "edits": [{"oldText": "let x = 1;", "newText": "let total = 2;"}]})
}

fn script() -> Server {
    Server::new([Answer::text("I will change it.").and_call("call_1", "EditFile", edit()), Answer::text("Finished the work.")])
}

fn asked(project: &Project) -> Terminal {
    let mut terminal = project.open_sized(&[], 120, 36);
    terminal.prompt("rename it");
    terminal.review("Edit src/main.rs");
    terminal
}

#[test]
fn a_file_changed_back_restores_the_original_approval() {
    let server = script();
    let project = Project::with(&server).file("src/main.rs", BEFORE);
    let mut terminal = asked(&project);
    let path = project.path("src/main.rs");
    let swap = project.path("src/.main.rs.swp");
    let ways: [&dyn Fn(); 3] =
        [&|| std::fs::write(&path, "fn main() {}\n").unwrap(), &|| std::fs::remove_file(&path).unwrap(), &|| {
            // Replaces the file by a rename, as editors do.
            std::fs::write(&swap, "// mine\n").unwrap();
            std::fs::rename(&swap, &path).unwrap();
        }];
    for change in ways {
        change();
        let screen = terminal.wait_for(MARK);
        assert!(screen.contains("y  updated diff") && screen.contains("let total = 2;"), "{screen}");
        std::fs::write(&path, BEFORE).unwrap();
        let screen = terminal.wait_until_gone(MARK);
        assert!(screen.contains("a  always"), "{screen}");
    }
    terminal.review("Edit src/main.rs");
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("src/main.rs"), BEFORE.replace("let x = 1;", "let total = 2;"));
}

#[test]
fn updated_proposals_apply_to_the_current_content_after_every_change() {
    let server = script();
    let project = Project::with(&server).file("src/main.rs", BEFORE);
    let mut terminal = asked(&project);
    for mine in ["// one\n", "// two\n", "// three\n"] {
        std::fs::write(project.path("src/main.rs"), format!("{mine}{BEFORE}")).unwrap();
        terminal.wait_for("y  updated diff");
        terminal.review("Edit src/main.rs");
        terminal.send("y");
        terminal.wait_that("it is made anew", |screen| screen.contains(mine.trim()) && screen.contains("y  yes"));
        terminal.review("Edit src/main.rs");
    }
    assert_eq!(server.requests().len(), 1, "the model has no part in it");
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("src/main.rs"), format!("// three\n{}", BEFORE.replace("let x = 1;", "let total = 2;")));
}

#[test]
fn edits_that_no_longer_apply_are_reported_to_the_model() {
    let server = script();
    let project = Project::with(&server).file("src/main.rs", BEFORE);
    let mut terminal = asked(&project);
    std::fs::write(project.path("src/main.rs"), "fn main() {}\n").unwrap();
    terminal.wait_for("y  updated diff");
    terminal.review("Edit src/main.rs");
    terminal.send("y");
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("src/main.rs"), "fn main() {}\n");
    assert!(!server.request(1).tool_results()[0].1.contains("applied"), "{:?}", server.request(1).tool_results());
}

#[test]
fn a_queued_approval_shows_that_its_file_changed() {
    let new = json!({"path": "new.txt", "content": "from the model\n"});
    let server = Server::new([
        Answer::call("call_1", "EditFile", edit()).and_call("call_2", "WriteFile", new),
        Answer::text("Finished the work."),
    ]);
    let project = Project::with(&server).file("src/main.rs", BEFORE);
    let mut terminal = asked(&project);
    terminal.wait_for("1 of 2");
    std::fs::write(project.path("new.txt"), "by hand\n").unwrap();
    terminal.send("\t");
    terminal.wait_for("2 of 2");
    terminal.wait_for(MARK);
    terminal.send("\t");
    let screen = terminal.wait_for("1 of 2");
    assert!(!screen.contains(MARK), "{screen}");
    terminal.review("Edit src/main.rs");
    // The next prompt requires its own `y`.
    terminal.send("y");
    terminal.wait_for(MARK);
    terminal.review("new.txt");
    terminal.decide('n');
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("new.txt"), "by hand\n");
}

#[test]
#[cfg(target_os = "linux")]
fn an_idle_approval_does_not_wake_the_process() {
    let server = script();
    let project = Project::with(&server).file("src/main.rs", BEFORE);
    let terminal = asked(&project);
    std::thread::sleep(Duration::from_secs(1));
    let woke = || -> u64 {
        let threads = std::fs::read_dir(format!("/proc/{}/task", terminal.pid())).unwrap().flatten();
        let status = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok());
        let count = |status: String| {
            let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?.to_owned();
            line.split_whitespace().last()?.parse::<u64>().ok()
        };
        status.filter_map(count).sum()
    };
    let before = woke();
    std::thread::sleep(Duration::from_secs(3));
    let times = woke() - before;
    assert!(times <= 3, "it woke {times} times");
}
