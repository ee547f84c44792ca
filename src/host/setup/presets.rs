//! Policy presets and their names.

use crate::host::policy_templates::Preset;
use crate::protocol::Problem;

const PRESETS: [(Preset, &str); 4] =
    [(Preset::Ask, "ask"), (Preset::Strict, "strict"), (Preset::Relaxed, "relaxed"), (Preset::Readonly, "readonly")];

pub(crate) fn from_name(name: &str) -> Result<Preset, Problem> {
    let known = PRESETS.iter().find(|(_, known)| *known == name || name == "default" && *known == "ask");
    known.map(|(preset, _)| *preset).ok_or_else(|| {
        Problem::new(format!("unknown preset `{name}`"))
            .because("must be ask, strict, relaxed or readonly")
            .hint("pass a policy file to `aye --policy FILE` instead")
    })
}
