//! The policies to start from, in short.

use crate::app::cli::Preset;
use crate::protocol::PresetFacts;

/// Preset, its name, what runs, what asks, what never happens.
const PRESETS: [(Preset, &str, [&str; 3]); 4] = [
    (
        Preset::Ask,
        "ask",
        ["reading in the project, a few programs that only read", "edits, deletes, commands, the network", "nothing"],
    ),
    (
        Preset::Strict,
        "strict",
        ["reading, but for files with secrets", "edits, deletes, named programs", "other programs, the network"],
    ),
    (
        Preset::Relaxed,
        "relaxed",
        ["edits in the project, everyday builds", "deletes, what leaves the machine or destroys", "privilege"],
    ),
    (
        Preset::Readonly,
        "readonly",
        ["reading, programs that only read", "what such programs would write", "edits, deletes, the network"],
    ),
];

pub fn facts() -> Vec<PresetFacts> {
    let facts = |(preset, name, [runs, asks, never]): &(Preset, &str, [&str; 3])| PresetFacts {
        name: (*name).to_owned(),
        runs: (*runs).to_owned(),
        asks: (*asks).to_owned(),
        never: (*never).to_owned(),
        suggested: *preset == Preset::Ask,
    };
    PRESETS.iter().map(facts).collect()
}

pub fn named(name: &str) -> Result<Preset, String> {
    let known = PRESETS.iter().find(|(_, known, _)| *known == name || name == "default" && *known == "ask");
    known.map(|(preset, ..)| *preset).ok_or_else(|| {
        format!("`{name}` is no preset; expected ask, strict, relaxed or readonly (a file is taken by `aye --policy FILE`)")
    })
}
