//! `aye memory …`: clap definition and checked action.

use crate::protocol::{MemoryTarget, Problem};
use clap::Subcommand;

/// Number of digits in a proposal ID.
const ID_DIGITS: std::ops::RangeInclusive<usize> = 4..=8;

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub(crate) enum MemorySub {
    /// Search for repeated instructions, and list the proposals
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a proposal, with its diff and its source
    Show {
        /// Proposal ID, or its first 4 or more digits
        #[arg(value_parser = proposal_id)]
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Apply a proposal to its file, after showing the diff
    Apply {
        /// Proposal ID, or its first 4 or more digits
        #[arg(value_parser = proposal_id)]
        id: String,
        /// Apply it without asking
        #[arg(long)]
        yes: bool,
        /// Apply exactly the diff with this digest, as `show --json` printed it
        #[arg(long, value_name = "DIGEST", conflicts_with = "yes")]
        digest: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change the text or the file of a proposal
    Edit {
        /// Proposal ID, or its first 4 or more digits
        #[arg(value_parser = proposal_id)]
        id: String,
        /// New text; quote it if it has several words
        #[arg(required_unless_present = "target")]
        text: Option<String>,
        /// File: project, personal or global
        #[arg(long, value_parser = target)]
        target: Option<MemoryTarget>,
    },
    /// Drop a proposal permanently
    Drop {
        /// Proposal ID, or its first 4 or more digits
        #[arg(value_parser = proposal_id)]
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Propose an instruction yourself
    Add {
        /// Instruction in one sentence, in quotes
        text: String,
        /// File: project, personal or global
        #[arg(long, default_value = "personal", value_parser = target)]
        target: MemoryTarget,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Undo an applied proposal, keeping later changes to the file
    Undo {
        /// Proposal ID, or its first 4 or more digits
        #[arg(value_parser = proposal_id)]
        id: String,
    },
}

impl MemorySub {
    /// Returns whether the action can change a file that the model reads, or can resolve a proposal.
    pub(crate) fn changes_memory(&self) -> bool {
        !matches!(self, Self::List { .. } | Self::Show { .. })
    }
}

fn proposal_id(given: &str) -> Result<String, Problem> {
    let is_id = ID_DIGITS.contains(&given.len()) && given.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id {
        return Ok(given.to_ascii_lowercase());
    }
    Err(Problem::new("must be 4 to 8 hex digits of a proposal ID").hint("run `aye memory list` to list the IDs"))
}

fn target(given: &str) -> Result<MemoryTarget, Problem> {
    MemoryTarget::from_name(given).ok_or_else(|| Problem::new("must be project, personal or global"))
}
