//! What the disk says of calls that the process before this one began and did not end.

use crate::ports::{Found, Record};
use crate::protocol::{CallId, PlaceChange};
use std::collections::HashMap;

pub fn found(records: &[Record]) -> HashMap<CallId, Found> {
    // What began before these has an end, also where it cannot be read.
    let is_boundary = |record: &Record| {
        matches!(
            record,
            Record::Answer { .. }
                | Record::StepStarted { .. }
                | Record::StepCompleted { .. }
                | Record::TaskStarted { .. }
                | Record::TaskEnded { .. }
        )
    };
    let since = records.iter().rposition(is_boundary).map_or(0, |at| at + 1);
    let mut open: HashMap<&CallId, &[PlaceChange]> = HashMap::new();
    for record in &records[since..] {
        match record {
            Record::Started { tool_call_id, places, .. } => drop(open.insert(tool_call_id, places)),
            Record::Finished { result, .. } | Record::KeptFrom { result, .. } => drop(open.remove(&result.tool_call_id)),
            _ => {}
        }
    }
    open.into_iter().filter_map(|(id, places)| crate::tools::found(places).map(|found| (id.clone(), found))).collect()
}
