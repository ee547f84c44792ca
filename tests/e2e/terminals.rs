//! Messages from the terminal: query replies, focus, resize.

use crate::support::{Project, Server, texts};

#[test]
fn text_typed_during_startup_becomes_the_draft() {
    let server = Server::new([]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    // The process has just started and does not read its input yet.
    terminal.send("explain the parser");
    terminal.wait_for("❯ explain the parser");
    assert_eq!(server.requests().len(), 0);
    terminal.send("\x03");
    assert!(terminal.quit().success());
    terminal.assert_restored();
}

#[test]
fn terminal_responses_never_appear_in_the_draft() {
    let server = Server::new([]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.wait_for(texts::EMPTY_DRAFT);
    for answer in [
        "\x1b[?62;22c",
        "\x1b[?2026;2$y\x1b[?2027;2$y\x1b[?2031;2$y",
        "\x1b]11;rgb:ffff/ffff/ffff\x1b\\",
        "\x1bP>|some terminal(1.2)\x1b\\",
        "\x1bP1+r524742=382f382f38\x1b\\",
        "\x1b[=1;2c\x1b[>1;10;0c\x1b[12;40R",
        "\x1b_Gi=31;OK\x1b\\",
        "\x1b[?997;1n",
        "\x1b[?1u",
    ] {
        terminal.send(answer);
    }
    terminal.send("typed");
    terminal.wait_for("❯ typed");
    terminal.send("\x03");
    assert!(terminal.quit().success());
    terminal.assert_restored();
}
