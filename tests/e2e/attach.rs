//! Attachments of a draft: files dropped on the terminal, an image from the clipboard, symbols from files.

use crate::support::{Answer, Project, Server, Terminal, texts};
use base64::Engine;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Grey image of one pixel, in Base64.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==";

/// Sends text as a terminal does after a paste or a drop.
fn paste(terminal: &mut Terminal, text: &str) {
    terminal.send(&format!("\x1b[200~{text}\x1b[201~"));
}

/// Sets up an X clipboard that contains this image.
fn with_clipboard(project: Project, picture: &[u8]) -> Project {
    let programs = project.directory("home").join("programs");
    std::fs::create_dir_all(&programs).unwrap();
    std::fs::write(programs.join("picture"), picture).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in\n*TARGETS) echo image/png ;;\n*image/png*) cat '{}' ;;\nesac\n",
        programs.join("picture").display()
    );
    std::fs::write(programs.join("xclip"), script).unwrap();
    std::fs::set_permissions(programs.join("xclip"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    project.env("PATH", &path).env("DISPLAY", ":99").env("WAYLAND_DISPLAY", "").env("SSH_TTY", "").env("SSH_CONNECTION", "")
}

/// Returns the files below a directory that other users can read.
fn readable_by_others(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                return readable_by_others(&path);
            }
            let open = path.metadata().unwrap().permissions().mode() & 0o077 != 0;
            if open { vec![path] } else { Vec::new() }
        })
        .collect()
}

#[test]
fn a_clipboard_image_is_sent_with_the_prompt_and_stored_privately() {
    let server = Server::new([Answer::text("A grey dot.")]);
    let picture = base64::prelude::BASE64_STANDARD.decode(PIXEL).unwrap();
    let project = with_clipboard(Project::with(&server), &picture);
    let mut terminal = project.open_sized(&["-m", "anthropic/claude-sonnet-5"], 100, 30);
    terminal.wait_for(texts::COMMANDS_HINT);
    terminal.type_text("what is this ", 2);
    terminal.send("\x16");
    terminal.wait_for("image 1x1 png");
    terminal.wait_for("@artifact:");
    terminal.enter();
    terminal.wait_for("A grey dot.");
    let messages = server.request(0).body["messages"].clone();
    let images = messages[0]["content"].as_array().unwrap().iter().filter(|part| part["type"] == "image");
    assert_eq!(images.map(|part| part["source"]["data"].clone()).collect::<Vec<_>>(), [PIXEL], "{messages}");
    assert_eq!(
        readable_by_others(&project.directory("data").join("artifacts").join("contents")),
        Vec::<std::path::PathBuf>::new()
    );
    assert!(terminal.quit().success());
    terminal.assert_restored();
}

#[test]
fn dropped_files_become_mentions_and_outside_files_are_reported() {
    let server = Server::new([Answer::text("Read.")]);
    let project = Project::with(&server).file("my notes.md", "be brief\n");
    let mut terminal = project.open_sized(&[], 100, 30);
    terminal.wait_for(texts::COMMANDS_HINT);
    terminal.type_text("read", 2);
    let path = project.path("my notes.md").canonicalize().unwrap();
    paste(&mut terminal, &format!("file://{}\r\n", path.display().to_string().replace(' ', "%20")));
    terminal.wait_for("read @\"my notes.md\"");
    terminal.enter();
    terminal.wait_for("Read.");
    assert!(server.request(0).messages().contains("be brief"));
    let outside = project.directory("home").join("letter.txt");
    std::fs::write(&outside, "dear diary").unwrap();
    paste(&mut terminal, &format!("'{}'", outside.display()));
    terminal.wait_for("is outside the workspace");
    terminal.wait_for("@/");
    terminal.send("\x03");
    terminal.wait_until_gone("letter.txt");
    paste(&mut terminal, "/nothing/of/that/name");
    terminal.wait_for("/nothing/of/that/name");
    terminal.send("\x03");
    terminal.wait_for("draft cleared");
    assert!(terminal.quit().success());
}

#[test]
fn declared_symbols_become_mentions_with_line_ranges() {
    let server = Server::new([Answer::text("Greets.")]);
    let source = "fn main() {\n}\n\nfn greet() {\n    hello();\n}\n";
    let project = Project::with(&server).file("src/main.rs", source).file("src/größe.py", "def great():\n    pass\n");
    let mut terminal = project.open_sized(&[], 100, 30);
    terminal.wait_for(texts::COMMANDS_HINT);
    terminal.type_text("look at @#greet", 2);
    terminal.wait_that("it is found", |screen| screen.contains("fn greet") && screen.contains("src/main.rs:4"));
    terminal.send("\t");
    terminal.wait_for("look at @src/main.rs:4-6");
    terminal.type_text("and @#great", 2);
    terminal.wait_for("def great");
    terminal.send("\t");
    terminal.wait_for("@src/größe.py:1-2");
    terminal.enter();
    terminal.wait_for("Greets.");
    let sent = server.request(0).messages();
    assert!(sent.contains("hello()") && sent.contains("def great") && !sent.contains("fn main"), "{sent}");
    assert!(terminal.quit().success());
}
