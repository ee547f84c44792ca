//! The tools: plan and run, one file each.
