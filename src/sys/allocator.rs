//! Allocator settings, and functions that return unused memory to the operating system.

/// Limits the allocator to two heaps shared by all threads. By default, nearly every thread has its own heap, and
/// memory freed in one heap cannot be reused by threads that allocate from another. Must be called before any thread is
/// started.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "no safe call sets the number of heaps")]
pub(crate) fn share_heaps() {
    // SAFETY: the call takes no pointer. If it fails, the number of heaps stays unchanged.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 2) };
}

/// Does nothing, because only glibc lets a program set the number of heaps.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn share_heaps() {}

/// Prevents other processes of the same user from reading this process's memory, which contains keys, and disables core
/// dumps. Child processes are not affected. If the process is already being traced, it is left as it is, because the
/// tracer can read its memory anyway.
#[cfg(target_os = "linux")]
pub(crate) fn hide_from_others() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let traced = status.lines().filter_map(|line| line.strip_prefix("TracerPid:")).any(|pid| pid.trim() != "0");
    if !traced {
        // If the call fails, there is no alternative.
        let _ = nix::sys::prctl::set_dumpable(false);
    }
}

/// Does nothing, because other systems have no equivalent setting.
#[cfg(not(target_os = "linux"))]
pub fn hide_from_others() {}

/// Returns freed memory to the operating system. The allocator would otherwise retain it for later use, although a
/// process that is waiting for the user does not need it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "no safe call trims the heap")]
pub(crate) fn release_free_memory() {
    // SAFETY: the call takes no pointer, and memory in use is not moved.
    unsafe { libc::malloc_trim(0) };
}

/// Does nothing, because other allocators return freed memory on their own.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn release_free_memory() {}

/// Drops the pages that contain the program's own code, most of which runs only at startup. Code that runs again is
/// reloaded from the file cache, a few pages at a time.
#[cfg(target_os = "linux")]
pub(crate) fn release_code_pages() {
    let (Ok(maps), Ok(program)) = (std::fs::read_to_string("/proc/self/maps"), std::fs::read_link("/proc/self/exe")) else {
        return;
    };
    for (start, end) in code(&maps, &program.to_string_lossy()) {
        #[expect(unsafe_code, reason = "no safe call drops pages")]
        // SAFETY: the range is a mapping of this program that is not writable, so each page equals the file. The range
        // stays mapped: a thread that runs in it waits until the page is loaded again.
        unsafe {
            libc::madvise(std::ptr::with_exposed_provenance_mut(start), end - start, libc::MADV_DONTNEED);
        }
    }
}

/// Does nothing, because only Linux offers this way to find and drop code pages.
#[cfg(not(target_os = "linux"))]
pub fn release_code_pages() {}

/// Returns the address ranges in `maps` at which the code of `program` is mapped.
#[cfg(target_os = "linux")]
fn code<'m>(maps: &'m str, program: &'m str) -> impl Iterator<Item = (usize, usize)> + 'm {
    maps.lines().filter_map(move |line| {
        let mut fields = line.splitn(6, ' ');
        let (range, kind) = (fields.next()?, fields.next()?);
        let is_code = kind == "r-xp" && fields.last()?.trim_start() == program;
        let (start, end) = range.split_once('-').filter(|_| is_code)?;
        Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
    })
}

#[cfg(test)]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod tests {
    #[test]
    fn only_the_code_mapping_of_the_program_is_released() {
        let maps = "55d0c0000000-55d0c0800000 r--p 00000000 fd:00 12                         /opt/my aye\n\
                    55d0c0800000-55d0c1d00000 r-xp 00800000 fd:00 12                         /opt/my aye\n\
                    55d0c1d00000-55d0c1e00000 rw-p 01d00000 fd:00 12                         /opt/my aye\n\
                    7f0000000000-7f0000100000 r-xp 00000000 fd:00 13                         /usr/lib/libc.so.6\n\
                    7f0000200000-7f0000300000 r-xp 00000000 00:00 0 \n";
        assert_eq!(super::code(maps, "/opt/my aye").collect::<Vec<_>>(), [(0x55d0_c080_0000, 0x55d0_c1d0_0000)]);
        assert_eq!(super::code(maps, "/opt/aye").count(), 0);
    }

    #[test]
    fn the_process_is_not_dumpable_unless_traced() {
        use nix::sys::prctl;
        let before = prctl::get_dumpable().unwrap();
        super::hide_from_others();
        let after = prctl::get_dumpable().unwrap();
        prctl::set_dumpable(before).unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        assert_eq!(after, before && !status.contains("TracerPid:\t0"));
    }

    #[test]
    fn released_code_is_reloaded_when_executed() {
        let resident = || {
            let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let program = std::fs::read_link("/proc/self/exe").unwrap();
            let mut lines =
                smaps.lines().skip_while(|line| !(line.contains(" r-xp ") && line.ends_with(program.to_str().unwrap())));
            let size = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
            size.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
        };
        let before = resident();
        super::release_code_pages();
        let after = resident();
        assert!(after < before, "{after} of {before} kB are left");
        assert_eq!(format!("{:?}", "1 2".split(' ').map(str::parse::<u8>).collect::<Vec<_>>()), "[Ok(1), Ok(2)]");
    }

    #[test]
    fn releasing_memory_keeps_allocations_in_use() {
        let pieces: Vec<Vec<u8>> = (0..=255_u8).map(|byte| vec![byte; 4096]).collect();
        let kept: Vec<&Vec<u8>> = pieces.iter().skip(1).step_by(2).collect();
        drop(vec![0_u8; 1 << 20]);
        super::release_free_memory();
        assert!(kept.iter().all(|piece| piece.iter().all(|byte| *byte == piece[0])));
    }
}
