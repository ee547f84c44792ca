//! How the allocator keeps memory, and what nothing holds any more.

/// Two heaps for all threads: by default nearly each has one of its own, and what one frees is of no use to the others. Before there are
/// threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "no safe call sets the number of heaps")]
pub fn share_heaps() {
    // SAFETY: it takes no pointer. Where it is refused, the heaps are as many as before.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 2) };
}

/// Other allocators have their own ways.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn share_heaps() {}

/// Gives back to the system what was freed: the allocator keeps it for later, and a process that waits for its person has no use for it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "no safe call trims the heap")]
pub fn give_back() {
    // SAFETY: it takes no pointer, and what is in use stays where it is.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators give it back by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    #[test]
    fn what_is_in_use_is_as_it_was() {
        let pieces: Vec<Vec<u8>> = (0..=255_u8).map(|byte| vec![byte; 4096]).collect();
        let kept: Vec<&Vec<u8>> = pieces.iter().skip(1).step_by(2).collect();
        drop(vec![0_u8; 1 << 20]);
        super::give_back();
        assert!(kept.iter().all(|piece| piece.iter().all(|byte| *byte == piece[0])));
    }
}
