//! Summaries of the policy presets.

use crate::host::policy_templates::Preset;
use crate::protocol::PresetFacts;

/// Each preset with its name, and what it allows, asks about and denies.
const PRESETS: [(Preset, &str, [&str; 3]); 4] = [
    (
        Preset::Ask,
        "ask",
        ["reads in the project, a few read-only programs", "edits, deletions, commands, the network", "nothing"],
    ),
    (
        Preset::Strict,
        "strict",
        ["reads, except of files with secrets", "edits, deletions, named programs", "other programs, the network"],
    ),
    (
        Preset::Relaxed,
        "relaxed",
        ["edits in the project, everyday builds", "deletions, anything destructive or leaving the machine", "privilege"],
    ),
    (Preset::Readonly, "readonly", ["reads, read-only programs", "writes by such programs", "edits, deletions, the network"]),
];

pub(crate) fn facts() -> Vec<PresetFacts> {
    let facts = |(preset, name, [runs, asks, never]): &(Preset, &str, [&str; 3])| PresetFacts {
        name: (*name).to_owned(),
        runs: (*runs).to_owned(),
        asks: (*asks).to_owned(),
        never: (*never).to_owned(),
        suggested: *preset == Preset::Ask,
    };
    PRESETS.iter().map(facts).collect()
}

pub(crate) fn named(name: &str) -> Result<Preset, String> {
    let known = PRESETS.iter().find(|(_, known, _)| *known == name || name == "default" && *known == "ask");
    known.map(|(preset, ..)| *preset).ok_or_else(|| {
        format!(
            "unknown preset `{name}`: must be ask, strict, relaxed or readonly\nhint: pass a policy file to `aye \
            --policy FILE` instead"
        )
    })
}
