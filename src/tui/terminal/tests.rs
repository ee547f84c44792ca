use super::*;
use crate::tui::input::{ModeState, TerminalReply};
use crate::tui::theme::ColourDepth;

fn emulator(variables: &[(&str, &'static str)]) -> Emulator {
    Emulator::detect(|name| variables.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value))
}

fn asked(variables: &[(&str, &'static str)], colours: ColourDepth) -> String {
    String::from_utf8(emulator(variables).questions(colours)).expect("text").replace('\u{1b}', "^")
}

#[test]
fn the_colour_depth_follows_the_environment_of_the_terminal() {
    for (variables, expected) in [
        (&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")][..], ColourDepth::True),
        (&[("TERM", "xterm-256color"), ("COLORTERM", "24bit")], ColourDepth::True),
        (&[("TERM", "xterm-256color"), ("COLORTERM", "yes")], ColourDepth::Indexed256),
        (&[("TERM", "xterm-direct"), ("COLORTERM", "x")], ColourDepth::True),
        (&[("TERM", "xterm-kitty"), ("COLORTERM", "x")], ColourDepth::True),
        (&[("TERM", "xterm"), ("COLORTERM", "x")], ColourDepth::Sixteen),
        (&[("TERM", "linux"), ("COLORTERM", "truecolor")], ColourDepth::Sixteen),
        (&[("TERM", "screen-256color"), ("STY", "1.pts"), ("COLORTERM", "truecolor")], ColourDepth::Indexed256),
        (&[("TERM", "screen"), ("STY", "1.pts"), ("COLORTERM", "truecolor")], ColourDepth::Sixteen),
        (&[("TERM", "screen-256color"), ("TMUX", "/tmp/x"), ("COLORTERM", "truecolor")], ColourDepth::True),
    ] {
        let variable = |name: &str| variables.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| *value);
        assert_eq!(Emulator::detect(variable).colours(variable), expected, "{variables:?}");
    }
}

#[test]
fn terminals_are_not_sent_queries_that_they_would_print() {
    let all = asked(&[("TERM", "xterm-256color")], ColourDepth::Indexed256);
    for question in ["^[?u", "^]11;?^\\", "^[?2026$p", "^[?2027$p", "^[?2031$p", "^[?2048$p", "^[>0q", "^P+q524742;5463^\\"] {
        assert!(all.contains(question), "{question} in {all}");
    }
    assert!(all.ends_with("^[c"), "the last one is answered by all: {all}");
    assert!(!asked(&[("TERM", "xterm-kitty")], ColourDepth::True).contains("+q"), "true colours are known");
    assert_eq!(asked(&[("TERM", "linux")], ColourDepth::Sixteen), "");
    assert!(!asked(&[("TERM", "screen"), ("STY", "1")], ColourDepth::Sixteen).contains("^P"), "it would hand it on");
    assert!(!asked(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "Apple_Terminal")], ColourDepth::Indexed256).contains('p'));
}

#[test]
fn only_reported_terminal_modes_are_enabled() {
    let hear = |told: &mut TerminalCapabilities, answers: Vec<TerminalReply>| -> Vec<CapabilityEffect> {
        answers.into_iter().map(|answer| told.apply_reply(answer)).filter(|then| *then != CapabilityEffect::Nothing).collect()
    };
    let mut kitty = TerminalCapabilities::new(emulator(&[("TERM", "xterm-kitty")]));
    let said = vec![
        TerminalReply::Kitty,
        TerminalReply::Mode(2026, ModeState::Off),
        TerminalReply::Mode(2027, ModeState::AlwaysOn),
        TerminalReply::Mode(2031, ModeState::Off),
        TerminalReply::Mode(2048, ModeState::Off),
        TerminalReply::Attributes,
        TerminalReply::Kitty,
        TerminalReply::Attributes,
    ];
    let expected = [
        CapabilityEffect::Push(TerminalMode::Kitty),
        CapabilityEffect::Synchronise(true),
        CapabilityEffect::Push(TerminalMode::Schemes),
        CapabilityEffect::Push(TerminalMode::Sizes),
    ];
    assert_eq!(hear(&mut kitty, said), expected);
    assert!(kitty.reports_modified_enter() && kitty.has_answered);

    let mut xterm = TerminalCapabilities::new(emulator(&[("TERM", "xterm-256color")]));
    let said = vec![
        TerminalReply::Mode(2026, ModeState::Unknown),
        TerminalReply::Mode(2027, ModeState::Off),
        TerminalReply::Mode(2031, ModeState::Unknown),
        TerminalReply::Attributes,
    ];
    let expected = [
        CapabilityEffect::Synchronise(false),
        CapabilityEffect::Push(TerminalMode::Clusters),
        CapabilityEffect::Push(TerminalMode::ModifiedKeys),
    ];
    assert_eq!(hear(&mut xterm, said), expected);
    assert!(!xterm.reports_modified_enter(), "it did not say that it obeys");

    let mut screen = TerminalCapabilities::new(emulator(&[("TERM", "screen"), ("STY", "1")]));
    assert_eq!(hear(&mut screen, vec![TerminalReply::Attributes]), []);
}

#[test]
fn sequences_for_the_outer_terminal_pass_through_the_multiplexer() {
    let sequence = "\x1b]9;words\x1b\\";
    for (variables, expected) in [
        (&[("TERM", "xterm")][..], "^]9;words^\\"),
        (&[("TERM", "tmux-256color")], "^Ptmux;^^]9;words^^\\^\\"),
        (&[("TERM", "screen"), ("STY", "1")], "^P^]9;words\u{7}^\\"),
    ] {
        let through = String::from_utf8(emulator(variables).wrap_for_outer(sequence)).expect("text");
        assert_eq!(through.replace('\u{1b}', "^"), expected);
    }
}

#[test]
fn notifications_and_progress_use_the_sequences_of_each_terminal() {
    for (variables, name, notice, progress) in [
        (&[("TERM", "xterm-kitty")][..], "", Some(Notice::Nine), true),
        (&[("TERM", "xterm-256color"), ("VTE_VERSION", "7600")], "", Some(Notice::Notify), false),
        (&[("TERM", "foot")], "", Some(Notice::Notify), false),
        (&[("TERM", "xterm-256color")], "WezTerm 2024", Some(Notice::Nine), true),
        (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "Apple_Terminal")], "", None, false),
        (&[("TERM", "linux")], "", None, false),
        (&[("TERM", "tmux-256color"), ("TMUX", "x"), ("KITTY_WINDOW_ID", "1")], "", Some(Notice::Nine), false),
    ] {
        let emulator = emulator(variables);
        assert_eq!((emulator.notice(name), emulator.shows_progress(name)), (notice, progress), "{variables:?}");
    }
}

#[test]
fn every_enabled_terminal_mode_can_be_disabled() {
    for what in TerminalMode::ALL {
        assert!(!what.disable_sequence().is_empty(), "{what:?}");
        assert_eq!(TerminalMode::ALL.iter().filter(|other| other.bit() == what.bit()).count(), 1, "{what:?}");
    }
}

#[test]
fn gnu_screen_is_detected_as_delaying_the_escape_key() {
    for (variables, held) in [
        (&[("TERM", "screen"), ("STY", "1.pts")][..], true),
        (&[("TERM", "screen-256color"), ("TMUX", "/tmp/tmux"), ("STY", "1.pts")], false),
        (&[("TERM", "screen-256color")], false),
        (&[("TERM", "xterm")], false),
    ] {
        let emulator = emulator(variables);
        assert_eq!((emulator.delays_escape(), emulator.reverses_italics()), (held, held), "{variables:?}");
    }
}
