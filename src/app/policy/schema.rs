//! `aye policy schema`: the format of a policy file, as editors and validators read it.

use crate::app::exit::Exit;
use crate::app::trouble::Trouble;

pub const SCHEMA: &str = include_str!("../../../assets/policy/schema.json");

pub fn run() -> Result<Exit, Trouble> {
    crate::app::say(SCHEMA);
    Ok(Exit::Completed)
}
