//! `aye policy schema`: prints the JSON Schema of a policy file, for editors and validators.

use crate::host::console::print_text;
use crate::host::error::CliError;
use crate::host::exit::Exit;

pub(crate) const SCHEMA: &str = include_str!("../../../assets/policy/schema.json");

pub(crate) fn run() -> Result<Exit, CliError> {
    print_text(SCHEMA);
    Ok(Exit::Completed)
}
