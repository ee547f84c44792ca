//! Proposals amended before approval: excluded or edited hunks, a different command, a file edited in an editor.

use crate::support::{Answer, Project, Server, TIMEOUT, Terminal, texts, wait_until};
use serde_json::{Value, json};

const BEFORE: &str = "fn greet() {\n    one();\n}\n\n\n\n\n\n\n\nfn main() {\n    two();\n}\n";

fn edits() -> Value {
    json!({"path": "src/main.rs", "edits": [
        {"oldText": "one();", "newText": "uno();"},
        {"oldText": "two();", "newText": "dos();"}
    ]})
}

fn script() -> Server {
    Server::new([Answer::text("I will change it.").and_call("call_1", "EditFile", edits()), Answer::text("Finished the work.")])
}

fn project(server: &Server) -> Project {
    Project::with(server).file("src/main.rs", BEFORE)
}

/// Deselects the second hunk.
fn leave_out(terminal: &mut Terminal) {
    terminal.send("]");
    terminal.wait_for("hunk 2 of 2");
    terminal.send(" ");
    terminal.wait_for("apply hunk 1 of 2");
    // A letter decides only if no other key follows immediately.
    std::thread::sleep(std::time::Duration::from_millis(400));
}

#[test]
fn a_hunk_can_be_left_out_and_the_model_is_informed() {
    let server = script();
    let project = project(&server);
    let mut terminal = project.open_sized(&[], 120, 36);
    terminal.prompt("rename them");
    let screen = terminal.review("Edit src/main.rs");
    assert!(screen.contains("hunk 1 greet()") && screen.contains("hunk 2 main()"), "{screen}");
    leave_out(&mut terminal);
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("src/main.rs"), BEFORE.replace("one", "uno"));
    let (_, told) = &server.request(1).tool_results()[0];
    assert!(told.contains("hunk 1 of 2 (greet(), your line 2): applied"), "{told}");
    assert!(told.contains("hunk 2 of 2 (main(), your line 12): not applied; those lines are unchanged"), "{told}");
}

#[test]
fn a_hunk_can_be_edited_in_the_panel() {
    let server = script();
    let project = project(&server);
    let mut terminal = project.open_sized(&[], 120, 36);
    terminal.prompt("rename them");
    terminal.review("Edit src/main.rs");
    terminal.send("e");
    terminal.wait_for("the text that will be written if you approve");
    terminal.type_text("    // mine", 5);
    terminal.send("\n");
    terminal.wait_for("// mine");
    terminal.send("\x13");
    terminal.wait_for("with your edits");
    terminal.review("Edit src/main.rs");
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("src/main.rs"), BEFORE.replace("    one", "    // mine\n    uno").replace("two", "dos"));
    let (_, told) = &server.request(1).tool_results()[0];
    assert!(told.contains("edited; replaced by\n    // mine\n    uno();"), "{told}");
}

#[test]
fn a_file_edited_in_the_external_editor_needs_a_new_approval() {
    let server = script();
    let project = project(&server).env("EDITOR", "sed -i s/dos/tres/");
    let mut terminal = project.open_sized(&[], 120, 36);
    terminal.prompt("rename them");
    terminal.review("Edit src/main.rs");
    terminal.send("E");
    let screen = terminal.wait_for(texts::EDITED_BY_YOU);
    assert!(!screen.contains("+    dos();") && project.read("src/main.rs") == BEFORE, "{screen}");
    let screen = terminal.review(texts::EDITED_BY_YOU);
    assert!(screen.contains("tres();"), "{screen}");
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("src/main.rs"), BEFORE.replace("one", "uno").replace("two", "tres"));
    let (_, told) = &server.request(1).tool_results()[0];
    assert!(told.contains("edited `src/main.rs` before it was applied") && told.contains("+    tres();"), "{told}");
}

#[test]
fn a_missing_editor_is_reported_and_the_proposal_is_unchanged() {
    let server = script();
    let project = project(&server).env("EDITOR", "no-such-editor").env("VISUAL", "");
    let mut terminal = project.open_sized(&[], 120, 36);
    terminal.prompt("rename them");
    terminal.review("Edit src/main.rs");
    terminal.send("E");
    terminal.wait_for("cannot find the editor `no-such-editor`");
    terminal.review("Edit src/main.rs");
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("src/main.rs"), BEFORE.replace("one", "uno").replace("two", "dos"));
}

#[test]
fn an_edited_command_needs_a_new_approval_and_the_model_is_informed() {
    let command = json!({"command": "touch first"});
    let server = Server::new([Answer::call("call_1", "RunCommand", command), Answer::text("Finished the work.")]);
    let project = Project::with(&server);
    let mut terminal = project.open_sized(&[], 120, 36);
    terminal.prompt("run it");
    terminal.review("y  yes");
    terminal.send("e");
    terminal.wait_for("enter submit");
    terminal.type_text("-second", 5);
    terminal.wait_for("touch first-second");
    terminal.enter();
    let screen = terminal.review(texts::EDITED_BY_YOU);
    assert!(screen.contains("touch first-second") && !project.exists("first-second"), "{screen}");
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
    assert!(project.exists("first-second") && !project.exists("first"));
    // The transcript shows the command that ran, also after the session is resumed.
    let card = "$ touch first-second  edited by you";
    assert!(terminal.screen().contains(card), "{}", terminal.screen());
    terminal.quit();
    let mut again = project.open_sized(&["--continue"], 120, 36);
    again.wait_for(card);
    let (_, told) = &server.request(1).tool_results()[0];
    assert!(told.contains("The user edited this command before it ran: touch first-second"), "{told}");
}

#[test]
fn a_file_changed_during_an_approval_gets_an_updated_proposal() {
    let server = script();
    let project = project(&server);
    let mut terminal = project.open_sized(&[], 120, 36);
    terminal.prompt("rename them");
    terminal.review("Edit src/main.rs");
    std::fs::write(project.path("src/main.rs"), format!("// by hand\n{BEFORE}")).unwrap();
    terminal.wait_for(texts::CHANGED_ON_DISK);
    let screen = terminal.wait_for("y  updated diff");
    assert!(!screen.contains("always"), "{screen}");
    terminal.review("Edit src/main.rs");
    // The new prompt appears and requires its own `y`.
    terminal.send("y");
    terminal.wait_for("by hand");
    assert_eq!(server.requests().len(), 1, "the model is not asked before the person was");
    terminal.review("Edit src/main.rs");
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
    let wanted = format!("// by hand\n{}", BEFORE.replace("one", "uno").replace("two", "dos"));
    assert_eq!(project.read("src/main.rs"), wanted);
}

#[test]
fn a_session_killed_after_a_partial_approval_applies_exactly_the_approved_hunks() {
    let server = Server::with_responder(|request| {
        if request.tool_results().is_empty() {
            Answer::text("I will change it.").and_call("call_1", "EditFile", edits())
        } else {
            Answer::text("Finished the work.")
        }
    });
    let project = project(&server);
    let mut terminal = project.open_sized(&[], 120, 36);
    terminal.prompt("rename them");
    terminal.review("Edit src/main.rs");
    leave_out(&mut terminal);
    let wanted = BEFORE.replace("one", "uno");
    terminal.send("y");
    // The changed file is the first visible sign of the decision. Later records may not be saved yet.
    wait_until(TIMEOUT, || project.read("src/main.rs") != BEFORE);
    terminal.kill();
    assert_eq!(project.read("src/main.rs"), wanted);
    drop(terminal);
    let mut terminal = project.open_sized(&["--resume"], 120, 36);
    let goes_on = |screen: &str| screen.contains("/continue") || screen.contains("Finished the work.");
    let screen = terminal.wait_that("it goes on", goes_on);
    if !screen.contains("Finished the work.") {
        terminal.prompt("/continue");
    }
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("src/main.rs"), wanted);
    let told = server.requests().last().unwrap().messages();
    assert!(told.contains("not applied; those lines are unchanged"), "{told}");
}
