//! Grouping of consecutive reads and searches, which then share one row.

use super::read_group::{ReadGroup, ReadKind};
use super::{Card, CardState, Transcript};
use crate::protocol::CallId;
use std::cell::Cell;
use std::rc::Rc;

/// Joins a call that has ended with the reads and searches next to it.
pub(crate) fn join(transcript: &mut Transcript, id: &CallId) {
    let Some(at) = transcript.calls.get(id).copied() else { return };
    if !is_member(transcript, at) {
        return;
    }
    let first = (0..at).rev().take_while(|at| is_member(transcript, *at)).last().unwrap_or(at);
    let last = (at + 1..transcript.entries.len()).take_while(|at| is_member(transcript, *at)).last().unwrap_or(at);
    if first == last {
        return;
    }
    let cards = || transcript.entries[first..=last].iter().filter_map(|entry| entry.card());
    let count = |kind| cards().filter(|card| card.reads == Some(kind)).count();
    let is_open = cards().filter_map(|card| card.group.as_ref()).any(|group| group.is_open.get());
    let group = Rc::new(ReadGroup {
        files: count(ReadKind::File),
        directories: count(ReadKind::Directory),
        searches: count(ReadKind::Search),
        is_open: Cell::new(is_open),
    });
    for at in first..=last {
        if let Some(card) = transcript.changing(at).and_then(|entry| entry.card_mut()) {
            (card.group, card.leads_group) = (Some(Rc::clone(&group)), at == first);
        }
    }
}

/// Returns whether an entry is a read or search that has succeeded.
fn is_member(transcript: &Transcript, at: usize) -> bool {
    let entry = transcript.entries.get(at).filter(|entry| entry.undone.is_none());
    let is_done = |card: &Card| card.reads.is_some() && matches!(card.state, CardState::Done { .. }) && !card.hides_something();
    entry.and_then(|entry| entry.card()).is_some_and(is_done)
}

/// Opens or closes the group whose row an entry shows. Returns whether there is one.
pub(crate) fn toggle(transcript: &mut Transcript, at: usize) -> bool {
    let card = transcript.entries.get(at).and_then(|entry| entry.card()).filter(|card| card.leads_group);
    let Some(group) = card.and_then(|card| card.group.clone()) else { return false };
    set_open(transcript, &group, !group.is_open.get());
    true
}

/// Opens the group of an entry, because one of its calls is to be shown.
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

/// Splits a group before an entry, because the entries from there on are undone.
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
