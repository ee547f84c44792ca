use super::*;
use crate::protocol::review::Confidence;

#[test]
fn a_menu_with_more_rows_below_shows_an_arrow() {
    let mut model = model(40, 12);
    typed(&mut model, "/");
    let drawn = picture(&mut model, 20_000);
    assert!(drawn.lines().any(|row| row.ends_with("… ▼")), "{drawn}");
}

#[test]
fn the_model_list_matches_its_snapshots() {
    check("models", |model| {
        cards(model);
        control(model, 'l');
        tell(model, EventKind::ModelsListed { models: listed_models(), notices: Vec::new() }, 9100);
        key(model, KeyCode::Up);
        tell(model, EventKind::ModelsListed { models: Vec::new(), notices: vec!["`acme` could not be asked".to_owned()] }, 9200);
    });
}

#[test]
fn the_command_completion_menu_matches_its_snapshots() {
    check("slash", |model| {
        cards(model);
        let fix = own_command("fix", "---\ndescription: Fix an issue\nargument-hint: <number>\n---\nFix $1");
        tell(model, EventKind::LookedUp(HostResponse::Commands { commands: vec![fix], notices: Vec::new() }), 9000);
        typed(model, "/f");
        key(model, KeyCode::Down);
    });
}

#[test]
fn the_file_completion_menu_matches_its_snapshots() {
    check("files", |model| {
        typed(model, "compare @gr");
        let file = |path: &str, tokens| FoundFile { path: path.to_owned(), tokens };
        let files = vec![
            file("src/greeter.rs", Some(840)),
            file("docs/größe.md", Some(12_400)),
            file("gr/", None),
            file("a/very/long/path/that/does/not/fit/on/a/narrow/screen/with/all/its/folders/greeting.rs", Some(3)),
            file("my notes/\u{202e}green.md", Some(12)),
        ];
        tell(model, EventKind::LookedUp(HostResponse::Files { words: "gr".to_owned(), files }), 9000);
    });
}

#[test]
fn the_command_palette_matches_its_snapshots() {
    check("palette", |model| {
        cards(model);
        control(model, 'p');
        typed(model, "mo");
    });
}

fn sessions(model: &mut UiModel) {
    typed(model, "/resume");
    key(model, KeyCode::Enter);
    let sessions = listed_sessions();
    let told = HostResponse::Sessions {
        words: String::new(),
        all: false,
        archived: false,
        sessions,
        here: 3,
        everywhere: 57,
        looks_on: false,
    };
    feed(model, Msg::Event(Box::new(event(EventKind::LookedUp(told)))), 9000);
    tell(model, EventKind::LookedUp(HostResponse::Session(looked_at("a1b2c3d4"))), 9000);
}

#[test]
fn the_session_list_matches_its_snapshots() {
    check("sessions", sessions);
}

#[test]
fn the_branches_of_a_session_match_their_snapshots() {
    check("tree", |model| {
        tell(model, started("Validate the name"), 8000);
        tell(
            model,
            EventKind::TaskCompleted { text: "done".to_owned(), usage: Usage::default(), cost_usd: None, step_count: 1 },
            8100,
        );
        typed(model, "/tree");
        key(model, KeyCode::Enter);
        let branch = |id: &str, records, depth, title: &str, after| Branch {
            session_id: SessionId::new(id),
            records,
            depth,
            title: Some(title.to_owned()),
            prompts: 2,
            after,
            age: "2 h".to_owned(),
            archived: depth == 2,
        };
        let here = model.info.session.as_ref().map(ToString::to_string).unwrap_or_default();
        let branches = vec![
            branch(&here, None, 0, "Validate the name", None),
            branch("b1b2c3d4", None, 1, "Validate the name (fork)", Some(1)),
            branch("c1b2c3d4", None, 2, "A third \u{1b}way", Some(2)),
            branch(&here, Some(40), 1, "Without a library", Some(0)),
        ];
        tell(model, EventKind::LookedUp(HostResponse::Branches { branches }), 9000);
        key(model, KeyCode::End);
    });
}

#[test]
fn a_session_preview_on_a_narrow_screen_matches_its_snapshots() {
    check("sessions-look", |model| {
        sessions(model);
        key(model, KeyCode::Char(' '));
    });
}

#[test]
fn the_dialog_to_delete_a_session_matches_its_snapshots() {
    check("sessions-delete", |model| {
        sessions(model);
        control(model, 'x');
    });
}

fn review() -> Review {
    let diff = "diff --git a/src/parser/lexer.rs b/src/parser/lexer.rs\n--- a/src/parser/lexer.rs\n+++ b/src/parser/lexer.rs\n\
                @@ -40,7 +40,9 @@ impl Lexer {\n     pub fn next(&mut self) -> Token {\n         let start = self.at;\n\
                -        while self.peek().is_some() {\n+        while let Some(letter) = self.peek() {\n\
                +            if letter == '\\n' { break; }\n             self.at += 1;\n         }\n\
                -        Token::new(start, self.at)\n+        Token::new(start, self.at - 1)\n     }\n\
                diff --git a/README.md b/README.md\n--- a/README.md\n+++ b/README.md\n@@ -1 +1,2 @@\n # Greeter\n+A greeter.\n";
    let finding = |file: &str, line, severity, confidence, title: &str, explanation: &str| Finding {
        file: file.to_owned(),
        line,
        severity,
        confidence,
        title: title.to_owned(),
        explanation: explanation.to_owned(),
    };
    let explanation = "`self.at - 1` is evaluated also when no letter was consumed. `start` is then larger than the end, and \
                       `Token::new` panics on the first empty line of a file.\n\nUse `self.at` as before, or return no token.";
    let findings = vec![
        finding("src/parser/lexer.rs", 46, Severity::High, Confidence::High, "an empty token underflows and panics", explanation),
        finding("src/parser/lexer.rs", 43, Severity::Medium, Confidence::Low, "a carriage return is part of the token", "CRLF."),
        finding("README.md", 2, Severity::Low, Confidence::Medium, "the new command is not described", "Describe it."),
    ];
    let changes = ReviewedChanges { title: "uncommitted changes".to_owned(), diffs: FileDiffs::read(diff), left_out: Vec::new() };
    Review { changes, summary: "The lexer stops at line ends.".to_owned(), findings, dropped: 1 }
}

fn reviewed(model: &mut UiModel) {
    for letter in "/review".chars() {
        key(model, KeyCode::Char(letter));
    }
    key(model, KeyCode::Enter);
    tell(model, EventKind::LookedUp(HostResponse::Review(ReviewUpdate::Ended(Box::new(review())))), 19_000);
    picture(model, 19_100);
}

#[test]
fn the_findings_of_a_review_match_their_snapshots() {
    check("findings", reviewed);
}

#[test]
fn a_finding_with_its_diff_matches_its_snapshots() {
    check("finding", |model| {
        reviewed(model);
        key(model, KeyCode::Enter);
    });
}

#[test]
fn a_review_in_progress_matches_its_snapshots() {
    check("reviewing", |model| {
        for letter in "/review".chars() {
            key(model, KeyCode::Char(letter));
        }
        key(model, KeyCode::Enter);
        let told = |told| EventKind::LookedUp(HostResponse::Review(told));
        tell(model, told(ReviewUpdate::Started("uncommitted changes: 2 files (+4 −2)".to_owned())), 18_000);
        tell(model, told(ReviewUpdate::Step("Read src/parser/lexer.rs".to_owned())), 19_000);
        let usage = Usage { input_tokens: 12_000, output_tokens: 300, ..Usage::default() };
        tell(
            model,
            EventKind::ReviewSpent { usage, cost_usd: Some(0.02), session_cost_usd: Some(0.44), estimated: false },
            19_500,
        );
    });
}
