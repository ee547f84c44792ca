//! How the program is linked: where the C library of this machine reads packed relocations, they are packed. Otherwise they are a tenth of
//! the program, and all of them are read and kept in memory at every start.

use std::env;
use std::process::Command;

/// The first release of glibc that reads them.
const SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_native = env::var_os("TARGET").is_some_and(|target| env::var_os("HOST").is_some_and(|host| host == target));
    let is_gnu = env::var_os("CARGO_CFG_TARGET_ENV").is_some_and(|libc| libc == "gnu");
    if is_native && is_gnu && glibc().is_some_and(|version| version >= SINCE) {
        // A linker that does not know it says so and goes on.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn glibc() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?.stdout;
    let (major, minor) = str::from_utf8(&said).ok()?.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
