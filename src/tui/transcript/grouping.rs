//! Grouping of consecutive reads and searches into a single row.

use super::read_group::ReadGroup;
use super::{Card, CardState, Transcript};
use crate::protocol::CallId;
use std::rc::Rc;

/// Groups a completed call with adjacent reads and searches, if there are any.
pub(crate) fn join(transcript: &mut Transcript, id: &CallId) {
    let Some(at) = transcript.calls.get(id).copied() else { return };
    if !is_member(transcript, at) || extend(transcript, at) {
        return;
    }
    let first = (0..at).rev().take_while(|at| is_member(transcript, *at)).last().unwrap_or(at);
    let last = (at + 1..transcript.entries.len()).take_while(|at| is_member(transcript, *at)).last().unwrap_or(at);
    let cards = || transcript.entries[first..=last].iter().filter_map(|entry| entry.card());
    let Some(leader) = cards().next().map(|card| card.id.clone()).filter(|_| first < last) else { return };
    let is_open = cards().filter_map(|card| card.group.as_ref()).any(|group| group.is_open.get());
    let group = Rc::new(ReadGroup::new(leader, is_open));
    cards().filter_map(|card| card.reads).for_each(|kind| group.add(kind));
    for at in first..=last {
        if let Some(card) = transcript.changing(at).and_then(|entry| entry.card_mut()) {
            (card.group, card.leads_group) = (Some(Rc::clone(&group)), at == first);
        }
    }
}

/// Adds a call to the end of the preceding group. Returns whether the call was added. This takes constant time, because
/// only the call and the entry that shows the group's row change.
fn extend(transcript: &mut Transcript, at: usize) -> bool {
    let card = |at: usize| transcript.entries.get(at).and_then(|entry| entry.card());
    let is_last = !is_member(transcript, at + 1) && card(at).is_some_and(|card| card.group.is_none());
    let before = at.checked_sub(1).filter(|before| is_last && is_member(transcript, *before));
    let Some(group) = before.and_then(card).and_then(|card| card.group.clone()) else { return false };
    let (Some(kind), Some(leader)) = (card(at).and_then(|card| card.reads), transcript.calls.get(&group.leader).copied()) else {
        return false;
    };
    group.add(kind);
    transcript.changing(leader);
    if let Some(card) = transcript.changing(at).and_then(|entry| entry.card_mut()) {
        (card.group, card.leads_group) = (Some(group), false);
    }
    true
}

/// Returns whether an entry is a successful read or search that has not been undone.
fn is_member(transcript: &Transcript, at: usize) -> bool {
    let entry = transcript.entries.get(at).filter(|entry| entry.undone.is_none());
    let is_done = |card: &Card| card.reads.is_some() && matches!(card.state, CardState::Done { .. }) && !card.hides_something();
    entry.and_then(|entry| entry.card()).is_some_and(is_done)
}

/// Opens or closes the group whose row the entry shows. Returns `false` if the entry does not show a group's row.
pub(crate) fn toggle(transcript: &mut Transcript, at: usize) -> bool {
    let card = transcript.entries.get(at).and_then(|entry| entry.card()).filter(|card| card.leads_group);
    let Some(group) = card.and_then(|card| card.group.clone()) else { return false };
    set_open(transcript, &group, !group.is_open.get());
    true
}

/// Opens the group that contains an entry, so that its calls are shown separately.
pub(crate) fn open(transcript: &mut Transcript, at: usize) {
    let group = transcript.entries.get(at).and_then(|entry| entry.card()).and_then(|card| card.group.clone());
    if let Some(group) = group.filter(|group| !group.is_open.get()) {
        set_open(transcript, &group, true);
    }
}

fn set_open(transcript: &mut Transcript, group: &Rc<ReadGroup>, is_open: bool) {
    group.is_open.set(is_open);
    for at in members(transcript, group) {
        transcript.changing(at);
    }
}

/// Dissolves the group that contains the entry at index `at`, unless the entry is the group's first. The entries from
/// `at` onwards are about to be undone.
pub(crate) fn split(transcript: &mut Transcript, at: usize) {
    let card = transcript.entries.get(at).and_then(|entry| entry.card()).filter(|card| !card.leads_group);
    let Some(group) = card.and_then(|card| card.group.clone()) else { return };
    for at in members(transcript, &group) {
        if let Some(card) = transcript.changing(at).and_then(|entry| entry.card_mut()) {
            (card.group, card.leads_group) = (None, false);
        }
    }
}

fn members(transcript: &Transcript, group: &Rc<ReadGroup>) -> Vec<usize> {
    let is_in = |card: &Card| card.group.as_ref().is_some_and(|own| Rc::ptr_eq(own, group));
    let all = transcript.entries.iter().enumerate();
    all.filter(|(_, entry)| entry.card().is_some_and(is_in)).map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{ReadKind, TranscriptEntryKind};
    use super::*;
    use crate::tui::tests::fixtures::call;

    /// Groups five reads that complete in the given order. Returns the group's counts, and for each call whether it
    /// leads a group.
    fn joined(order: [usize; 5]) -> ([usize; 3], Vec<bool>) {
        let kinds = [ReadKind::File, ReadKind::Search, ReadKind::File, ReadKind::Directory, ReadKind::File];
        let mut transcript = Transcript::default();
        for (at, kind) in kinds.into_iter().enumerate() {
            let mut card = Card::new(call(&at.to_string()), "Read");
            card.reads = Some(kind);
            transcript.push(TranscriptEntryKind::Card(card));
        }
        for at in order {
            let id = call(&at.to_string());
            transcript.card_mut(&id).unwrap().state = CardState::Done { latency_ms: 1 };
            join(&mut transcript, &id);
        }
        let cards: Vec<&Card> = transcript.entries.iter().filter_map(|entry| entry.card()).collect();
        let group = cards[0].group.as_ref().unwrap();
        assert!(cards.iter().all(|card| card.group.as_ref().is_some_and(|own| Rc::ptr_eq(own, group))));
        (group.counts(), cards.iter().map(|card| card.leads_group).collect())
    }

    #[test]
    fn parallel_calls_share_one_row_regardless_of_completion_order() {
        for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [0, 2, 1, 4, 3], [1, 3, 0, 4, 2]] {
            assert_eq!(joined(order), ([3, 1, 1], vec![true, false, false, false, false]), "{order:?}");
        }
    }
}
