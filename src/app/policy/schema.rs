//! `aye policy schema`: the JSON Schema of a policy file, for editors and validators.

use crate::app::exit::Exit;
use crate::app::trouble::Trouble;

pub const SCHEMA: &str = include_str!("../../../assets/policy/schema.json");

pub fn run() -> Result<Exit, Trouble> {
    crate::app::say(SCHEMA);
    Ok(Exit::Completed)
}
