use super::*;

#[test]
fn a_menu_with_more_below_says_so_beside_its_words() {
    let mut model = model(40, 12);
    typed(&mut model, "/");
    let drawn = picture(&mut model, 20_000);
    assert!(drawn.lines().any(|row| row.ends_with("… ▼")), "{drawn}");
}

#[test]
fn the_models_to_choose_from() {
    check("models", |model| {
        cards(model);
        control(model, 'l');
        tell(model, EventKind::ModelsListed { models: listed_models(), notices: Vec::new() }, 9100);
        key(model, KeyCode::Up);
        tell(model, EventKind::ModelsListed { models: Vec::new(), notices: vec!["`acme` could not be asked".to_owned()] }, 9200);
    });
}

#[test]
fn commands_behind_a_slash() {
    check("slash", |model| {
        cards(model);
        let fix = own_command("fix", "---\ndescription: Fix an issue\nargument-hint: <number>\n---\nFix $1");
        tell(model, EventKind::LookedUp(HostResponse::Commands { commands: vec![fix], notices: Vec::new() }), 9000);
        typed(model, "/f");
        key(model, KeyCode::Down);
    });
}

#[test]
fn files_behind_an_at_sign() {
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
fn the_palette() {
    check("palette", |model| {
        cards(model);
        control(model, 'p');
        typed(model, "mo");
    });
}

fn sessions(model: &mut Model) {
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
fn the_sessions_to_go_on_with() {
    check("sessions", sessions);
}

#[test]
fn the_branches_of_a_session() {
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
fn a_session_looked_at_on_a_narrow_screen() {
    check("sessions-look", |model| {
        sessions(model);
        key(model, KeyCode::Char(' '));
    });
}

#[test]
fn a_session_to_delete() {
    check("sessions-delete", |model| {
        sessions(model);
        control(model, 'x');
    });
}
