//! Recorded keystrokes that other agents mistook for an answer because a prompt opened while they were being typed.

/// Keystrokes. `{2200}` is a pause in milliseconds, `<enter>` is the Enter key, and everything else is typed text.
pub(crate) struct KeyStream {
    /// Agent in which the keystrokes caused a wrong answer, and a description of what went wrong.
    pub of: &'static str,
    pub typed: &'static str,
}

/// Text typed without a pause while a task was running.
const ON: &str = "a yes please also 1 2 p";
/// Text typed with a pause in the middle, during which the prompt opened.
const REST: &str = "also fix the{2200} bug in case 1 y";

pub(crate) const STREAMS: &[KeyStream] = &[
    KeyStream { of: "claude, typed on: held back, letters lost", typed: ON },
    KeyStream { of: "claude, after a rest: `1` ran the command", typed: REST },
    KeyStream { of: "codex, typed on: held back, letters lost", typed: ON },
    KeyStream { of: "codex, after a rest: `n` denied and stopped the turn", typed: REST },
    KeyStream { of: "codex: `y` would have run it", typed: "and then{2200} y it again" },
    KeyStream { of: "codex: `p` would have written a rule", typed: "use the{2200} p flag" },
    KeyStream { of: "opencode: a prompt and enter over an open question applied the edit", typed: "make it shorter<enter>" },
    KeyStream { of: "gemini, typed on: `1` ran the command", typed: "also 1 more thing" },
    KeyStream { of: "gemini, after a rest: `1` ran the command", typed: "also fix the{2200} 1 bug" },
    KeyStream { of: "gemini: the number first", typed: "1 2 3 go" },
    KeyStream { of: "qwen, typed on: letters lost", typed: ON },
    KeyStream { of: "qwen, after a rest: letters lost", typed: REST },
    KeyStream { of: "pi, typed on", typed: ON },
    KeyStream { of: "pi, after a rest", typed: REST },
    KeyStream { of: "words that begin with the letter of a choice", typed: "yes no always never explain preview" },
];

/// Returns the keys, each with the time since the first one in milliseconds. The key is `None` for Enter.
pub(crate) fn keys(typed: &str, between_ms: u64) -> Vec<(u64, Option<char>)> {
    let mut keys = Vec::new();
    let (mut at, mut rest) = (0, typed);
    while let Some(letter) = rest.chars().next() {
        if let Some((pause, after)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            at += pause.parse::<u64>().unwrap();
            rest = after;
            continue;
        }
        let key = rest.strip_prefix("<enter>").map(|after| (None, after));
        let (key, after) = key.unwrap_or((Some(letter), &rest[letter.len_utf8()..]));
        keys.push((at, key));
        at += between_ms;
        rest = after;
    }
    keys
}

/// Returns only the characters typed by the keystrokes.
pub(crate) fn text(typed: &str) -> String {
    keys(typed, 1).into_iter().filter_map(|(_, key)| key).collect()
}
