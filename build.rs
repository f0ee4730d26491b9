//! Links the unwinder into the binary where gcc has it as an archive: loading `libgcc_s.so.1` would be a tenth of
//! what `claim acquire` takes as a whole process. Anywhere else nothing is changed.

use std::env::var;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if let Some(folder) = stand_in() {
        println!("cargo:rustc-link-arg-bins=-L{}", folder.display());
    }
}

/// A folder in which the linker finds, by the name of the shared library, the archive.
fn stand_in() -> Option<PathBuf> {
    let is = |name: &str, value: &str| var(name).is_ok_and(|is| is == value);
    let native = var("HOST").ok()? == var("TARGET").ok()?;
    // Another linker than rustc's choice, `cc`, may not know gcc's archives.
    if !native
        || !is("CARGO_CFG_TARGET_OS", "linux")
        || !is("CARGO_CFG_TARGET_ENV", "gnu")
        || var("RUSTC_LINKER").is_ok()
    {
        return None;
    }
    let (unwinder, rest) = (archive("libgcc_eh.a")?, archive("libgcc.a")?);
    let folder = PathBuf::from(var("OUT_DIR").ok()?);
    let script = format!("INPUT({} {})\n", unwinder.display(), rest.display());
    std::fs::write(folder.join("libgcc_s.so"), script).ok()?;
    Some(folder)
}

/// One of gcc's own archives. `cc` answers with the bare name if it has none.
fn archive(name: &str) -> Option<PathBuf> {
    let answer = Command::new("cc").arg(format!("-print-file-name={name}")).output().ok()?;
    let path = String::from_utf8(answer.stdout).ok()?;
    let path = Path::new(path.trim());
    (path.is_absolute() && path.is_file() && !path.to_string_lossy().contains([' ', '(', ')', '"']))
        .then(|| path.to_owned())
}
