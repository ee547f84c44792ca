use super::*;

#[test]
fn the_context_bar_matches_the_percentage() {
    let mut model = model(120, 24);
    for (used, expected) in [
        (0, "░░░░░░░░ 0% 0/200k"),
        (986, "░░░░░░░░ 0% 986/200k"),
        (76_000, "▓▓▓░░░░░ 38% 76k/200k"),
        (199_000, "▓▓▓▓▓▓▓▓ 99% 199k/200k"),
    ] {
        model.info.tally.context_tokens = used;
        let drawn = picture(&mut model, 20_000);
        assert!(drawn.contains(expected), "{drawn}");
    }
}

#[test]
fn the_status_row_drops_the_model_provider_before_changing_values() {
    for (width, expected) in [
        (120, "  mine/large │ ctx ░░░░░░░░ 4% 8k/200k │ ask │ sandbox on: preview · net off │ main │ ~/src/greeter\n"),
        (96, "  mine/large │ ctx ░░░░░░░░ 4% 8k/200k │ ask │ sandbox on · net off │ main │ ~/src/greeter\n"),
        (86, "  large │ ctx ░░░░░░░░ 4% 8k/200k │ ask │ sandbox on · net off │ main │ ~/src/greeter\n"),
        (80, "  large │ ctx 4% 8k/200k │ ask │ sandbox on · net off │ main │ ~/src/greeter\n"),
        (60, "  large │ ctx 4% 8k/200k │ ask │ sandbox on · net off │ main\n"),
        (50, "  large │ 4% │ ask │ sandbox on · net off\n"),
    ] {
        let mut model = model(width, 24);
        model.info.header.model = "mine/large".to_owned();
        model.info.header.sandbox = "sandbox on: preview · net off".to_owned();
        model.info.tally.context_tokens = 8_000;
        let drawn = picture(&mut model, 20_000);
        assert!(drawn.contains(expected), "{drawn}");
    }
}

#[test]
fn the_status_row_warns_about_policy_expiry() {
    let layer = |seconds: i64| PolicyLayer {
        scope: "user".to_owned(),
        bundle_version: None,
        expires_at: jiff::Timestamp::from_second(seconds).ok(),
        max_input_tokens: None,
        file: None,
        rules: Vec::new(),
    };
    for (end, words) in [(3 * 3600, None), (1800, Some("policy ends 00:30 UTC")), (-1, Some("policy expired"))] {
        let mut model = model(60, 20);
        let kind =
            EventKind::PolicyInForce { layers: vec![layer(end)], name: "user".to_owned(), tools: Vec::new(), message: None };
        tell(&mut model, kind, 100);
        let drawn = picture(&mut model, 20_000);
        assert_eq!(words.is_some(), drawn.contains("policy e"), "{drawn}");
        assert!(drawn.contains(words.unwrap_or_default()), "{drawn}");
    }
}

/// Returns the text of the status row, and its warnings with their colours.
fn status_row(model: &mut UiModel) -> (String, Vec<(String, Token)>) {
    let mut buffer = Buffer::empty(Rect::new(0, 0, model.screen.size.width, model.screen.size.height));
    draw(model, &mut buffer, 20_000);
    let y = model.screen.size.height - 2;
    let row: String = (0..model.screen.size.width).map(|x| buffer[(x, y)].symbol()).collect();
    let colours = [Token::Warn, Token::Danger].into_iter().filter_map(|token| {
        let colour = model.screen.theme.style(token).fg?;
        let words: String =
            (0..model.screen.size.width).filter(|x| buffer[(*x, y)].fg == colour).map(|x| buffer[(x, y)].symbol()).collect();
        Some((words, token))
    });
    (row.trim().to_owned(), colours.filter(|(words, _)| !words.is_empty()).collect())
}

#[test]
fn mandatory_status_items_fit_at_every_width() {
    for width in 40..=160 {
        let mut model = model(width, 20);
        model.screen.theme = crate::tui::theme::Theme::choose(None, crate::tui::theme::ColourDepth::True);
        model.info.header.mode = Mode::AutoEdit;
        model.info.header.sandbox = "sandbox off".to_owned();
        let layer = PolicyLayer {
            scope: "user".to_owned(),
            bundle_version: None,
            expires_at: None,
            max_input_tokens: None,
            file: None,
            rules: Vec::new(),
        };
        let layers = vec![PolicyLayer { expires_at: jiff::Timestamp::from_second(400).ok(), ..layer }];
        tell(&mut model, EventKind::PolicyInForce { layers, name: "user".to_owned(), tools: Vec::new(), message: None }, 100);
        let (row, colours) = status_row(&mut model);
        for words in ["auto-edit", "ends 00:06", "sandbox off"] {
            assert!(row.contains(words), "{width}: {row}");
        }
        assert!(colours.contains(&("sandbox off".to_owned(), Token::Danger)), "{colours:?}");
    }
}

#[test]
fn policy_expiry_warnings_wake_the_screen_at_each_stage() {
    let mut model = model(120, 20);
    let layer = PolicyLayer {
        scope: "user".to_owned(),
        bundle_version: None,
        expires_at: None,
        max_input_tokens: None,
        file: None,
        rules: Vec::new(),
    };
    let layers = vec![PolicyLayer { expires_at: jiff::Timestamp::from_second(3 * 3600).ok(), ..layer }];
    tell(&mut model, EventKind::PolicyInForce { layers, name: "user".to_owned(), tools: Vec::new(), message: None }, 100);
    let mut at = 200;
    let mut said = Vec::new();
    while let Some(next) = model.deadline(at) {
        at = next;
        said.push((at / 1000, model.info.policy.upcoming_expiry(at).map(|(_, ending)| ending)));
    }
    use crate::tui::session_info::ExpiryStage;
    let ends = [(7200, ExpiryStage::Near), (10_200, ExpiryStage::Soon), (10_800, ExpiryStage::Over)];
    assert_eq!(said, ends.map(|(second, ending)| (second, Some(ending))));
}

#[test]
fn the_composer_shows_at_most_five_hints() {
    for (width, height) in [(160, 40), (200, 20)] {
        let drawn = picture(&mut model(width, height), 20_000);
        let hints = drawn.lines().rev().find(|row| row.contains("enter send")).unwrap_or_default().to_owned();
        assert_eq!(hints.matches(" · ").count(), 4, "{hints}");
    }
}

#[test]
fn the_escape_hint_is_dropped_last() {
    type Scene = fn(&mut UiModel);
    let scenes: [(&str, Scene); 6] = [
        ("a question about a command", |model| {
            tell(model, EventKind::ApprovalRequested(command_approval("a")), 100);
        }),
        ("a question about an edit", |model| tell(model, EventKind::ApprovalRequested(edit_approval("a")), 100)),
        ("browse mode", |model| {
            cards(model);
            control(model, 't');
        }),
        ("the list of sessions", |model| slash(model, "/resume")),
        ("the list of models", |model| slash(model, "/model")),
        ("the key map", |model| slash(model, "/keys")),
    ];
    for (name, scene) in scenes {
        for (width, height) in [(120, 36), (80, 24), (60, 20), (40, 12)] {
            let mut model = model(width, height);
            scene(&mut model);
            picture(&mut model, 20_000);
            // By then, the choices of a dialog take effect.
            if model.dialogs.take_fence(20_000) {
                feed(&mut model, Msg::Input(UiInput::Fence), 20_001);
            }
            let drawn = picture(&mut model, 25_000);
            let hints = drawn.trim_end().lines().last().unwrap_or_default();
            assert!(hints.contains("esc"), "{name} at {width}: {hints:?}\n{drawn}");
            let hints: Vec<_> = hints.trim().split(" · ").collect();
            assert!(hints.len() > 1, "and what is most likely: {hints:?} of {name} at {width}");
        }
    }
}

#[test]
fn policy_expiry_is_reported_while_idle_and_at_the_smallest_width() {
    let mut model = model(40, 12);
    let layer = PolicyLayer {
        scope: "user".to_owned(),
        bundle_version: Some("acme-dev".to_owned()),
        expires_at: jiff::Timestamp::from_second(1800).ok(),
        max_input_tokens: None,
        file: Some("/c/policy.toml".to_owned()),
        rules: Vec::new(),
    };
    tell(
        &mut model,
        EventKind::PolicyInForce { layers: vec![layer], name: "user".to_owned(), tools: Vec::new(), message: None },
        100,
    );
    let drawn = picture(&mut model, 20_000);
    assert!(drawn.contains("ask │ policy ends 00:30 UTC\n") || drawn.contains("policy ends 00:30 UTC "), "{drawn}");
    // This is after the last ten minutes.
    let end = model.deadline(1_300_000).unwrap();
    assert!((1_800_000..1_801_000).contains(&end), "{end}");
    feed(&mut model, Msg::Time, end);
    feed(&mut model, Msg::Time, end + 1);
    let drawn = picture(&mut model, end + 2);
    assert!(drawn.contains("policy expired") && drawn.contains("nothing runs"), "{drawn}");
    assert_eq!(drawn.matches("`acme-dev`").count(), 1, "{drawn}");
    assert_eq!(model.deadline(end + 2), None);
}

#[test]
fn a_narrow_status_row_shows_the_network_state_in_full() {
    let mut narrow = model(40, 12);
    narrow.info.header.sandbox = "sandbox on: preview · net off".to_owned();
    narrow.info.header.mode = crate::protocol::Mode::AutoEdit;
    let drawn = picture(&mut narrow, 100);
    assert!(drawn.contains("sandbox on · net off") && !drawn.contains("preview"), "{drawn}");
    let mut wide = model(100, 24);
    wide.info.header.sandbox = "sandbox on: preview · net off".to_owned();
    assert!(picture(&mut wide, 100).contains("sandbox on: preview · net off"));
}

#[test]
fn the_context_window_is_capped_by_the_policy() {
    let mut model = model(100, 24);
    model.info.tally.context_tokens = 40_000;
    let row = |model: &mut UiModel| picture(model, 100);
    assert!(row(&mut model).contains("20% 40k/200k"));
    let layer = |most| PolicyLayer {
        scope: "user".to_owned(),
        bundle_version: None,
        expires_at: None,
        max_input_tokens: most,
        file: None,
        rules: Vec::new(),
    };
    let layers = vec![layer(None), layer(Some(50_000)), layer(Some(90_000))];
    tell(&mut model, EventKind::PolicyInForce { layers, name: "user".to_owned(), tools: Vec::new(), message: None }, 100);
    let drawn = row(&mut model);
    assert!(drawn.contains("80% 40k/50k"), "{drawn}");
}
