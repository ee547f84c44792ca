//! Tests, on a complete screen, of typing while a dialog opens: nothing is decided, and no letter is lost.

use super::*;
use crate::tui::layers::SessionList;
use crate::tui::tests::fixtures::{
    completed, effects_approval, form, listed_sessions, plan_approval, rewind_plan, text_field, trust, visit,
};
use crate::tui::typeahead_guard::key_streams::{self, STREAMS};
use crate::tui::typeahead_guard::{Confirm, GuardTiming};
use crossterm::event::KeyEventKind;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Number of random sentences. Their seeds are fixed, so every run uses the same sentences.
const SENTENCES: u64 = 10_000;

/// Screen on a terminal that responds with a delay, and a user who types. Time passes in the same way as in the main
/// loop.
pub(super) struct Desk {
    pub(super) model: UiModel,
    pub(super) now: u64,
    /// Messages that are yet to arrive, ordered by time.
    coming: BTreeMap<(u64, usize), Msg>,
    /// Number of messages added so far, used to order messages with the same time.
    count: usize,
    /// Time that the terminal takes to respond, in milliseconds, or `None` if it never responds.
    line_ms: Option<u64>,
    /// Commands that were sent, excluding those that save drafts.
    pub(super) sent: Vec<String>,
}

impl Desk {
    pub(super) fn new(pace: GuardTiming, line_ms: Option<u64>) -> Self {
        let mut model = model(60, 20);
        model.options.pace = pace;
        model.dialogs = crate::tui::approval::DialogStack::with_timing(pace);
        Self { model, now: 0, coming: BTreeMap::new(), count: 0, line_ms, sent: Vec::new() }
    }

    /// Creates a desk whose screen has room for a whole dialog, so that the first answer decides.
    pub(super) fn roomy(pace: GuardTiming, line_ms: Option<u64>) -> Self {
        let mut desk = Self::new(pace, line_ms);
        desk.model.screen.size = Size::new(100, 40);
        desk
    }

    pub(super) fn at(&mut self, time: u64, msg: Msg) {
        self.count += 1;
        self.coming.insert((time, self.count), msg);
    }

    pub(super) fn asks(&mut self, time: u64, approval: Approval) {
        self.at(time, Msg::Event(Box::new(event(EventKind::ApprovalRequested(approval)))));
    }

    pub(super) fn types(&mut self, from: u64, keys: &[(u64, Option<char>)]) {
        for (at, key) in keys {
            let code = key.map_or(KeyCode::Enter, KeyCode::Char);
            self.at(from + at, press(code, KeyModifiers::NONE));
        }
    }

    fn does(&mut self, msg: Msg) {
        for effect in update(&mut self.model, msg, self.now) {
            self.sent.extend(words(&effect).filter(|words| !words.starts_with("draft")));
        }
        // Only the first frame matters here. The main loop draws it soon after the message.
        if self.model.dialogs.take_fence(self.now + 4) {
            let mut buffer = Buffer::empty(Rect::from(self.model.screen.size));
            view::draw(&mut self.model, &mut buffer, self.now + 4);
            if let Some(line) = self.line_ms {
                self.at(self.now + 4 + line, Msg::Input(UiInput::Fence));
            }
        }
    }

    /// Plays the scheduled messages and timers up to the given time.
    pub(super) fn run(&mut self, until: u64) {
        loop {
            let next = self.coming.first_key_value().map(|(key, _)| *key).filter(|key| key.0 <= until);
            let due = self.model.deadline(self.now).filter(|due| *due <= next.map_or(until, |key| key.0));
            match (due, next) {
                // Input with the same time comes first, as in the main loop.
                (Some(due), Some(next)) if due < next.0 => self.wakes(due),
                (Some(due), None) => self.wakes(due),
                (_, Some(next)) => {
                    self.now = self.now.max(next.0);
                    let msg = self.coming.remove(&next).unwrap();
                    self.does(msg);
                }
                (None, None) => break,
            }
        }
        self.now = until;
    }

    fn wakes(&mut self, due: u64) {
        assert!(due > self.now || self.now == 0 || self.model.deadline(self.now) == Some(due));
        self.now = self.now.max(due);
        self.does(Msg::Time);
        assert!(self.model.deadline(self.now).is_none_or(|next| next > self.now), "it wakes for nothing");
    }
}

fn paces() -> [GuardTiming; 4] {
    [
        GuardTiming::default(),
        GuardTiming { arming_ms: 3000, ..GuardTiming::default() },
        GuardTiming { strict: true, ..GuardTiming::default() },
        GuardTiming { arming_ms: 300, ..GuardTiming::default() },
    ]
}

#[test]
fn input_that_other_agents_took_for_an_answer_stays_in_the_draft() {
    for stream in STREAMS {
        for (pace, between) in paces().into_iter().flat_map(|pace| [40, 150].map(|between| (pace, between))) {
            let keys = key_streams::keys(stream.typed, between);
            let end = keys.last().unwrap().0;
            for line_ms in [Some(40), None] {
                // The dialog opens and is armed before the first key, or opens at times throughout the sentence.
                for opens in (0..40).map(|nth| nth * 530).take_while(|opens| *opens < 3000 + end) {
                    let mut desk = Desk::new(pace, line_ms);
                    desk.asks(opens, edit_approval("a"));
                    desk.asks(opens + 40, command_approval("b"));
                    desk.types(3000, &keys);
                    desk.run(3000 + end + 8000);
                    let text = key_streams::text(stream.typed);
                    if stream.typed.ends_with("<enter>") {
                        assert_eq!(desk.sent, [format!("prompt {text:?}")], "{}, {between} ms, {opens}", stream.of);
                    } else {
                        assert_eq!(desk.sent, Vec::<String>::new(), "{}, {between} ms, {opens}", stream.of);
                        assert_eq!(desk.model.composer.text(), text, "{}, {between} ms, {opens}", stream.of);
                    }
                    assert_eq!(desk.model.dialogs.len(), 2);
                }
            }
        }
    }
}

/// Tests that no sentence fills in, sends or declines a server's request, whose dialog works like any other.
#[test]
fn text_typed_for_the_draft_never_answers_an_elicitation() {
    let field = FormField { default: Some("Ada".into()), ..text_field("name", true) };
    let form = Elicitation { wanted: ElicitationKind::Form { fields: vec![field] }, ..form("e") };
    let more = ["for now leave it as it is<enter>", "no{2200} fill in the form<enter>", "yes{2200} f<enter>"];
    for typed in STREAMS.iter().map(|stream| stream.typed).chain(more) {
        for (pace, between) in paces().into_iter().flat_map(|pace| [40, 150].map(|between| (pace, between))) {
            let keys = key_streams::keys(typed, between);
            let end = keys.last().unwrap().0;
            for opens in (0..40).map(|nth| nth * 530).take_while(|opens| *opens < 3000 + end) {
                let mut desk = Desk::new(pace, Some(40));
                desk.at(opens, Msg::Event(Box::new(event(EventKind::ElicitationRequested(form.clone())))));
                let visit = visit("v", "https://example.org/");
                desk.at(opens + 40, Msg::Event(Box::new(event(EventKind::ElicitationRequested(visit)))));
                desk.types(3000, &keys);
                desk.run(3000 + end + 8000);
                let text = key_streams::text(typed);
                let (sent, draft) = if typed.ends_with("<enter>") {
                    (vec![format!("prompt {text:?}")], String::new())
                } else {
                    (Vec::new(), text)
                };
                assert_eq!(desk.sent, sent, "{typed}, {between} ms, {opens}");
                assert_eq!(desk.model.composer.text(), draft, "{typed}, {between} ms, {opens}");
                assert_eq!(desk.model.dialogs.len(), 2);
            }
        }
    }
}

/// Generator of reproducible pseudo-random numbers.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.roll(all.len() as u64) as usize]
    }

    fn sentence(&mut self) -> String {
        const WORDS: &[&str] =
            &["y", "n", "a", "N", "yes", "no", "1", "2", "please", "fix", "it", "x", "p", "w", "d", "é", "你好", "r", "q", "and"];
        let count = 1 + self.roll(8);
        let mut sentence = (0..count).map(|_| *self.pick(WORDS)).collect::<Vec<_>>().join(" ");
        if self.roll(6) == 0 {
            sentence.insert(0, ' ');
        }
        // A number alone consists of keys of a list.
        if !sentence.contains(char::is_alphabetic) {
            sentence.push_str(" it");
        }
        // A single key is a valid answer, and so are two of which the first opens a dialog with the second.
        if sentence.chars().count() < 2 {
            sentence.push('h');
        }
        sentence
    }
}

/// Plays a sentence while dialogs open, close and are rearmed, and while the window changes.
fn random_sentence(seed: u64) {
    let mut dice = Dice(seed);
    let pace = match dice.roll(4) {
        0 => GuardTiming { strict: true, ..GuardTiming::default() },
        1 => GuardTiming { arming_ms: 300 + dice.roll(2700), ..GuardTiming::default() },
        _ => GuardTiming::default(),
    };
    let line_ms = (dice.roll(5) > 0).then(|| 1 + dice.roll(900));
    let mut desk = Desk::new(pace, line_ms);
    let sentence = dice.sentence();
    let mut keys = Vec::new();
    let mut at = 0;
    for (nth, letter) in sentence.chars().enumerate() {
        // This is a pause within the sentence.
        if nth > 1 && dice.roll(12) == 0 {
            at += 400 + dice.roll(2500);
        }
        keys.push((at, Some(letter)));
        at += 20 + dice.roll(181);
    }
    let begin = 3000 + dice.roll(6000);
    for nth in 0..=dice.roll(3) {
        let opens = dice.roll(begin + at);
        let kinds = [edit_approval, command_approval, effects_approval, plan_approval];
        let mut approval = dice.pick(&kinds)("a");
        approval.approval_id = ApprovalId::new(format!("a{nth}"));
        approval.tool_call_id = call(&format!("c{nth}"));
        desk.asks(opens, approval);
        if dice.roll(4) == 0 {
            let ended =
                completed(&format!("c{nth}"), ToolStatus::Failed, "", Some(ToolError::new(ErrorCode::Cancelled, "stopped")));
            desk.at(opens + dice.roll(begin + at - opens), Msg::Event(Box::new(event(ended))));
        }
    }
    // The files of the dialogs change on disk, and change back.
    for _ in 0..dice.roll(3) {
        let id = format!("a{}", dice.roll(3));
        let outdated = EventKind::ApprovalOutdated {
            tool_call_id: call(&format!("c{}", &id[1..])),
            approval_id: ApprovalId::new(id),
            outdated: dice.roll(3) > 0,
        };
        desk.at(dice.roll(begin + at), Msg::Event(Box::new(event(outdated))));
    }
    for _ in 0..dice.roll(3) {
        let time = dice.roll(begin + at);
        let size = Size::new(*dice.pick(&[60, 80, 120, 39]), *dice.pick(&[20, 24, 12]));
        let msg = [Msg::Input(UiInput::FocusIn), Msg::Resize(size), Msg::Resumed];
        desk.at(time, msg.into_iter().nth(dice.roll(3) as usize).unwrap());
    }
    // The user views a pending dialog and continues typing.
    match dice.roll(6) {
        0 => desk.at(begin - dice.roll(2500), press(KeyCode::Tab, KeyModifiers::NONE)),
        1 => desk.at(begin - dice.roll(2500), press(KeyCode::Char('q'), KeyModifiers::CONTROL)),
        _ => {}
    }
    desk.types(begin, &keys);
    desk.run(begin + at + 8000);
    assert_eq!(desk.sent, Vec::<String>::new(), "seed {seed}: {sentence:?} was an answer");
    assert_eq!(desk.model.composer.text(), sentence, "seed {seed}");
}

#[test]
fn ten_thousand_sentences_typed_over_opening_approvals_decide_nothing_and_lose_no_text() {
    for seed in 0..SENTENCES {
        random_sentence(seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn sentences_from_any_seed_decide_nothing_and_lose_no_text(seed in any::<u64>()) {
        random_sentence(seed);
    }
}

/// Kinds of dialog in which the user gives permission for something.
const KINDS: [&str; 10] = ["edit", "command", "effects", "plan", "always", "trust", "mode", "undo", "forget", "outdated"];

/// Returns a screen with a dialog of the given kind, which has keyboard focus or is about to receive it. Any further
/// typing goes to the dialog.
fn asked_of(kind: &str, pace: GuardTiming, line_ms: Option<u64>) -> Desk {
    let mut desk = Desk::roomy(pace, line_ms);
    let types = |desk: &mut Desk, words: &str, from: u64| {
        for (at, msg) in (from..).step_by(100).zip(keys(words)) {
            desk.at(at, msg);
        }
    };
    match kind {
        "command" => desk.asks(8000, command_approval("a")),
        "effects" => desk.asks(8000, effects_approval("a")),
        "plan" => desk.asks(8000, plan_approval("a")),
        "trust" => {
            let (question, answer) = trust(&["AGENTS.md (instructions for the model, 8 bytes)"]);
            // The answer of this dialog is not used.
            drop(answer);
            desk.model.dialogs.add(crate::tui::approval::trust_dialog(question), true, None);
            desk.at(1000, Msg::Time);
        }
        "mode" => types(&mut desk, "/mode auto<enter>", 7000),
        "undo" => {
            types(&mut desk, "/undo<enter>", 7000);
            desk.at(7900, Msg::Event(Box::new(event(EventKind::RewindPlanned(rewind_plan())))));
        }
        "forget" => {
            types(&mut desk, "/resume<enter>", 5000);
            let sessions = listed_sessions();
            let (words, all, archived, looks_on) = (String::new(), false, false, false);
            let listed = HostResponse::Sessions { words, all, archived, sessions, here: 3, everywhere: 57, looks_on };
            desk.at(6500, Msg::Event(Box::new(event(EventKind::LookedUp(listed)))));
            desk.at(7900, press(KeyCode::Char('x'), KeyModifiers::CONTROL));
        }
        _ => {
            desk.asks(1000, edit_approval("a"));
            if kind == "always" {
                types(&mut desk, "a", 7000);
                if pace.strict {
                    types(&mut desk, "<enter>", 7300);
                }
            }
            if kind == "outdated" {
                let (approval_id, tool_call_id) = (ApprovalId::new("a"), call("call-a"));
                let outdated = EventKind::ApprovalOutdated { approval_id, tool_call_id, outdated: true };
                desk.at(8000, Msg::Event(Box::new(event(outdated))));
            }
        }
    }
    desk.run(8000);
    assert_eq!(desk.model.dialogs.len(), 1, "{kind}");
    let is_rule = desk.model.dialogs.open().is_some_and(|panel| panel.kind.is::<crate::tui::approval::RuleChoice>());
    assert_eq!(is_rule, kind == "always", "{kind}");
    desk.sent.clear();
    desk
}

/// Returns the typed text that had no other effect, which is in the draft or in the filter of the list below the
/// dialog.
fn typed(desk: &Desk) -> String {
    let list = desk.model.layers.find::<SessionList>();
    list.map_or_else(|| desk.model.composer.text(), |list| list.filter().to_owned())
}

/// Returns whether anything other than a query was sent.
fn decided(desk: &Desk) -> bool {
    desk.sent.iter().any(|sent| !sent.starts_with("lookup(session"))
}

#[test]
fn sentences_typed_over_any_kind_of_dialog_decide_nothing_and_lose_no_text() {
    for kind in KINDS {
        for seed in 0..40 {
            let mut dice = Dice(seed * 31 + kind.len() as u64);
            let pace = paces()[dice.roll(4) as usize];
            let mut desk = asked_of(kind, pace, (dice.roll(5) > 0).then(|| 1 + dice.roll(900)));
            // The sentence begins when the dialog opens, while it is being armed, or after its choices take effect.
            let begin = 8000 + dice.roll(4000);
            let sentence = dice.sentence();
            let mut at = 0;
            let mut keys = Vec::new();
            for (nth, letter) in sentence.chars().enumerate() {
                at += if nth > 1 && dice.roll(10) == 0 { 2200 } else { 20 + dice.roll(181) };
                keys.push((at, Some(letter)));
            }
            desk.types(begin, &keys);
            desk.run(begin + at + 8000);
            assert!(!decided(&desk), "{kind} {seed}: {sentence:?} was an answer: {:?}", desk.sent);
            assert_eq!(typed(&desk), sentence, "{kind} {seed}");
            assert_eq!(desk.model.dialogs.len(), 1, "{kind} {seed}");
        }
    }
}

#[test]
fn input_that_other_agents_took_for_an_answer_does_not_answer_any_dialog() {
    let sentences: std::collections::BTreeSet<&str> =
        STREAMS.iter().map(|stream| stream.typed).filter(|words| !words.ends_with("<enter>")).collect();
    for kind in KINDS {
        for (nth, words) in sentences.iter().enumerate() {
            // The keys begin while the dialog is being armed, and after its choices take effect.
            for (begin, pace) in [(8300, paces()[nth % 4]), (12_500, paces()[(nth + 1) % 4])] {
                let mut desk = asked_of(kind, pace, Some(40));
                let keys = key_streams::keys(words, 60);
                desk.types(begin, &keys);
                desk.run(begin + keys.last().unwrap().0 + 8000);
                assert!(!decided(&desk), "{kind}, {words}, {begin}: {:?}", desk.sent);
                assert_eq!(typed(&desk), key_streams::text(words), "{kind}, {words}, {begin}");
            }
        }
    }
}

#[test]
fn held_keys_pastes_and_single_enters_do_not_answer_any_dialog() {
    for kind in KINDS {
        for pace in paces() {
            // The letter that opened the rule dialog was the first of its two keys.
            let enters: &[u64] = if kind == "always" && !pace.strict { &[] } else { &[12_000, 14_000] };
            let mut desk = asked_of(kind, pace, Some(5));
            for (at, key) in enters.iter().map(|at| (*at, KeyCode::Enter)) {
                desk.at(at, press(key, KeyModifiers::NONE));
            }
            desk.run(20_000);
            assert!(!decided(&desk), "{kind}: {:?}", desk.sent);
            let mut desk = asked_of(kind, pace, Some(5));
            desk.at(12_000, Msg::Input(UiInput::Paste("y".to_owned())));
            desk.run(20_000);
            assert!(!decided(&desk), "{kind}: {:?}", desk.sent);
            assert_eq!(typed(&desk), "y", "{kind}");
            for letter in ['y', '1'] {
                let mut desk = asked_of(kind, pace, Some(5));
                desk.at(12_000, press(KeyCode::Char(letter), KeyModifiers::NONE));
                for nth in 0..40 {
                    let key = KeyEvent::new_with_kind(KeyCode::Char(letter), KeyModifiers::NONE, KeyEventKind::Repeat);
                    desk.at(12_250 + nth * 33, Msg::Input(UiInput::Key(key)));
                }
                desk.run(20_000);
                assert!(!decided(&desk), "{kind} {letter}: {:?}", desk.sent);
            }
        }
    }
}

#[test]
fn a_key_just_before_or_after_a_window_change_does_not_answer_any_dialog() {
    let changes: [fn() -> Msg; 3] = [|| Msg::Input(UiInput::FocusIn), || Msg::Resize(Size::new(110, 42)), || Msg::Resumed];
    for kind in KINDS {
        for change in changes {
            // Before the change and within 300 ms after it, the key can only highlight a choice.
            for key_at in [11_900, 12_000, 12_299] {
                let mut desk = asked_of(kind, GuardTiming::default(), Some(5));
                desk.run(11_000);
                let letter = desk.model.dialogs.open().unwrap().choices[0].key.letter;
                desk.at(12_000, change());
                desk.at(key_at, press(KeyCode::Char(letter), KeyModifiers::NONE));
                desk.run(20_000);
                assert!(!decided(&desk), "{kind} at {key_at}: {:?}", desk.sent);
                assert_eq!(typed(&desk), "", "{kind} at {key_at}");
                assert!(desk.model.dialogs.is_open(), "{kind} at {key_at}");
            }
        }
    }
}

/// Clicks on the row of the first choice.
fn clicks(desk: &mut Desk, at: u64) {
    desk.run(at);
    let panel = desk.model.dialogs.open().unwrap();
    let choice = &panel.choices[0];
    let spoken = [choice.short.to_string(), choice.words.clone()].map(|words| format!("{}  {words}", choice.key.letter));
    let screen = draw(&mut desk.model, at);
    let shows_it = |row: &str| spoken.iter().any(|words| row.contains(words));
    let row = screen.lines().position(shows_it).unwrap_or_else(|| panic!("{spoken:?}\n{screen}"));
    let kind = crossterm::event::MouseEventKind::Down(crossterm::event::MouseButton::Left);
    let event = crossterm::event::MouseEvent { kind, column: 6, row: row as u16, modifiers: KeyModifiers::NONE };
    desk.does(Msg::Input(UiInput::Mouse(event)));
}

#[test]
fn a_click_only_highlights_and_is_ignored_right_after_a_focus_change() {
    for kind in KINDS {
        let mut desk = asked_of(kind, GuardTiming::default(), Some(5));
        desk.run(12_000);
        desk.does(Msg::Input(UiInput::FocusIn));
        clicks(&mut desk, 12_290);
        assert!(!desk.model.dialogs.open().unwrap().guard.is_choice_pending(), "{kind}");
        clicks(&mut desk, 13_000);
        assert!(desk.model.dialogs.open().unwrap().guard.is_choice_pending(), "{kind}");
        desk.run(13_600);
        clicks(&mut desk, 13_700);
        desk.run(19_500);
        assert!(!decided(&desk), "{kind}: {:?}", desk.sent);
    }
}

/// Holds a key: it is pressed once and, after the keyboard's delay, repeats.
fn holds(desk: &mut Desk, from: u64, delay: u64, apart: u64, kind: KeyEventKind) {
    desk.at(from, press(KeyCode::Char('y'), KeyModifiers::NONE));
    for nth in 0..60 {
        let key = KeyEvent::new_with_kind(KeyCode::Char('y'), KeyModifiers::NONE, kind);
        desk.at(from + delay + nth * apart, Msg::Input(UiInput::Key(key)));
    }
}

#[test]
fn a_held_key_approves_nothing() {
    for pace in paces() {
        for (delay, kind) in
            [(33, KeyEventKind::Press), (250, KeyEventKind::Press), (250, KeyEventKind::Repeat), (330, KeyEventKind::Repeat)]
        {
            for from in [50, 300, 700, 1500, 4000] {
                let mut desk = Desk::roomy(pace, Some(5));
                for name in ["a", "b", "c"] {
                    desk.asks(10, edit_approval(name));
                }
                holds(&mut desk, from, delay, 33, kind);
                desk.run(12_000);
                assert_eq!(desk.sent, Vec::<String>::new(), "from {from}, after {delay}");
            }
        }
    }
}

/// Tests slow keyboards, which repeat a key after 330 to 660 ms. If a choice has been confirmed by then, only the first
/// press must count as an answer.
#[test]
fn a_key_held_on_a_slow_keyboard_answers_at_most_the_first_approval() {
    for delay in [330, 400, 500, 660] {
        for apart in [33, 40, 59, 92] {
            for kind in [KeyEventKind::Press, KeyEventKind::Repeat] {
                let mut desk = Desk::roomy(GuardTiming::default(), Some(5));
                for name in ["a", "b", "c"] {
                    desk.asks(10, edit_approval(name));
                }
                holds(&mut desk, 4000, delay, apart, kind);
                desk.run(14_000);
                // A repeat that arrives in time is known before the confirmation.
                let in_time = kind == KeyEventKind::Repeat || apart < 60;
                let expected = if delay < 350 && in_time { Vec::new() } else { vec!["a Approved".to_owned()] };
                assert_eq!(desk.sent, expected, "after {delay}, {apart} apart");
            }
        }
    }
}

#[test]
fn deliberate_answers_are_confirmed_within_the_expected_delay() {
    // A letter is typed at the moment at which the prompt is armed, alone and with Enter.
    for (pace, line_ms, with_enter, expected) in [
        (GuardTiming::default(), Some(0), false, 350),
        (GuardTiming::default(), Some(0), true, 50),
        (GuardTiming::default(), Some(40), false, 390),
        (GuardTiming::default(), None, false, 850),
        (GuardTiming { arming_ms: 300, ..GuardTiming::default() }, None, false, 650),
        (GuardTiming { strict: true, ..GuardTiming::default() }, Some(0), true, 50),
    ] {
        let mut desk = Desk::roomy(pace, line_ms);
        desk.asks(1000, edit_approval("a"));
        desk.run(1004);
        let is_armed = |desk: &Desk, now| desk.model.dialogs.open().unwrap().guard.is_armed(now);
        let ready = (1004..9000)
            .find(|now| {
                desk.run(*now);
                is_armed(&desk, *now)
            })
            .unwrap();
        desk.at(ready, press(KeyCode::Char('y'), KeyModifiers::NONE));
        if with_enter {
            desk.at(ready + 50, press(KeyCode::Enter, KeyModifiers::NONE));
        }
        let decided = (ready..5000).find(|now| {
            desk.run(*now);
            !desk.sent.is_empty()
        });
        assert_eq!(desk.sent, ["a Approved"]);
        assert_eq!(decided.unwrap() - 1004, expected, "from the first frame");
    }
}

#[test]
fn in_strict_mode_every_answer_takes_a_key_and_enter_after_any_delay() {
    let strict = GuardTiming { strict: true, ..GuardTiming::default() };
    for (letter, wait, sent) in
        [('y', 60_000, "a Approved"), ('y', 60, "a Approved"), ('n', 700, "a Denied { reason: None }"), ('n', 20, "")]
    {
        let mut desk = Desk::roomy(strict, Some(5));
        desk.asks(1000, edit_approval("a"));
        desk.at(2000, press(KeyCode::Char(letter), KeyModifiers::NONE));
        desk.at(2000 + wait, press(KeyCode::Enter, KeyModifiers::NONE));
        desk.run(2000 + wait - 1);
        assert_eq!(desk.sent, Vec::<String>::new(), "{letter} alone");
        desk.run(90_000);
        assert_eq!(desk.sent.join(""), sent, "{letter} and enter after {wait} ms");
    }
    let mut desk = Desk::new(strict, Some(5));
    desk.asks(1000, edit_approval("a"));
    desk.run(2000);
    let panel = desk.model.dialogs.open().unwrap();
    assert!((0..panel.choices.len()).all(|at| panel.confirm(at) == Confirm::LetterThenEnter));
}

#[test]
fn an_approval_that_closes_does_not_lose_typed_letters() {
    for gone in [50, 200, 340] {
        for others in [0, 1] {
            let mut desk = Desk::new(GuardTiming::default(), Some(5));
            desk.asks(10, edit_approval("a"));
            (0..others).for_each(|_| desk.asks(11, edit_approval("b")));
            desk.types(4000, &[(0, Some('y')), (gone + 5, Some('e')), (gone + 60, Some('s'))]);
            let error = ToolError::new(ErrorCode::Cancelled, "stopped");
            let ended = completed("call-a", ToolStatus::Failed, "", Some(error));
            desk.at(4000 + gone, Msg::Event(Box::new(event(ended))));
            desk.run(12_000);
            assert_eq!((desk.sent.len(), desk.model.composer.text().as_str()), (0, "yes"), "{gone} {others}");
        }
    }
}

#[test]
fn a_denial_reason_goes_to_the_draft_when_its_approval_closes() {
    let mut model = asked(vec![edit_approval("a")]);
    play(&mut model, 6000, "N");
    wait(&mut model, 6350);
    play(&mut model, 6400, "not like");
    let error = ToolError::new(ErrorCode::Cancelled, "stopped");
    tell(&mut model, completed("call-a", ToolStatus::Failed, "", Some(error)), 7300);
    assert_eq!(model.composer.text(), "not like");
}

#[test]
fn an_approval_opens_only_after_a_pause_since_the_last_key() {
    // The last key was for a dialog, but was not an answer.
    let mut model = asked(vec![edit_approval("a")]);
    play(&mut model, 6000, "n<enter><pgup>");
    assert!(model.dialogs.is_empty());
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("b")), 6500);
    assert!(!model.dialogs.is_open());
    assert_eq!(model.deadline(6500), Some(7200));
    wait(&mut model, 7200);
    assert!(model.dialogs.is_open());
}

#[test]
fn an_approval_that_cannot_open_yet_does_not_set_a_timer() {
    let mut model = model(100, 40);
    play(&mut model, 1000, "<ctrl+r>");
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 5000);
    assert_eq!(model.deadline(6000), None);
}

#[test]
fn a_confirmation_checked_too_late_starts_again() {
    let mut model = asked(vec![edit_approval("a")]);
    play(&mut model, 6000, "y");
    assert_eq!(wait(&mut model, 7000), Vec::<String>::new(), "keys may lie there unread");
    assert_eq!(model.deadline(7000), Some(7088));
    assert_eq!(wait(&mut model, 7350), ["a Approved"]);
}

#[test]
fn trust_and_a_more_permissive_mode_take_two_keys() {
    let mut model = model(100, 40);
    let (question, _answered) = trust(&["AGENTS.md"]);
    model.dialogs.add(crate::tui::approval::trust_dialog(question), true, None);
    draw(&mut model, 1000);
    play(&mut model, 3000, "y");
    assert_eq!(wait(&mut model, 3350), Vec::<String>::new());
    assert_eq!(play(&mut model, 3400, "<enter>"), ["trust Yes"]);
    play(&mut model, 5000, "/mode auto<enter>");
    play(&mut model, 8000, "y");
    assert_eq!(wait(&mut model, 8350), Vec::<String>::new());
    assert_eq!(play(&mut model, 13_500, "<enter>"), Vec::<String>::new(), "too late");
}

#[test]
fn a_newline_in_a_pasted_reason_does_not_submit_the_denial() {
    let mut model = asked(vec![edit_approval("a")]);
    play(&mut model, 6000, "N");
    wait(&mut model, 6350);
    for (at, msg) in (7000..).step_by(2).zip(keys("wrong<enter>place")) {
        assert!(update(&mut model, msg, at).is_empty());
    }
    assert_eq!(play(&mut model, 8000, "<enter>"), ["a Denied { reason: Some(\"wrong place\") }"]);
}

#[test]
fn the_valid_keys_are_all_shown_on_a_narrow_screen() {
    for (width, words) in [(100, "`j` is not a choice here: y yes, n no"), (40, "`j` is not a choice: y n a")] {
        let mut model = model(width, 24);
        tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 100);
        draw(&mut model, 2000);
        wait(&mut model, 3000);
        draw(&mut model, 3000);
        play(&mut model, 6000, "j");
        let screen = draw(&mut model, 6100);
        assert!(screen.contains(words), "{screen}");
    }
}
