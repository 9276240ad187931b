//! Fetches one of Debian's cloud kernels without installing it: an apt state of its own with one suite,
//! so that the machine's apt stays as it is and the newest kernel of just that suite is found.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::process::{capture, check, run, say, tool};

/// The kernel's image, in the kernel's folder.
pub(super) const IMAGE: &str = "vmlinuz";
/// The text that `uname -r` prints there.
pub(super) const RELEASE: &str = "release";
/// The modules that the tests need, named so that their order is the order of loading.
pub(super) const MODULES: &str = "modules";

/// The names of the packages it came from; its age is the time of the last look.
const PACKAGES: &str = "packages";
const META_PACKAGE: &str = "linux-image-cloud-amd64";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Loaded in the guest: what the attach test attaches to.
const WANTED_MODULES: [&str; 1] = ["veth"];
const FRESH: Duration = Duration::from_secs(24 * 3600);

/// Puts image, release and modules into `folder`, unless a fresh enough kernel is there.
pub(super) fn fetch((archive, suite): (&str, &str), folder: &Path) -> Result<()> {
    let marker = folder.join(PACKAGES);
    if is_fresh(&marker) {
        return Ok(());
    }
    let apt = Apt::new(folder.join("apt"), archive, suite)?;
    let packages = match apt.kernel_packages() {
        Ok(packages) => packages,
        Err(error) if marker.is_file() => {
            say(format!(
                "{suite}: no answer from Debian's archive ({error:#}); booting the cached kernel"
            ));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let names = packages.join("\n");
    if fs::read_to_string(&marker).is_ok_and(|cached| cached == names) {
        fs::write(&marker, names)?;
        return apt.remove();
    }
    say(format!("fetching {}", packages.join(" ")));
    let unpacked = apt.download(&packages)?;
    keep(&unpacked, folder)?;
    fs::write(&marker, names)?;
    apt.remove()
}

fn is_fresh(marker: &Path) -> bool {
    let written = fs::metadata(marker).and_then(|file| file.modified());
    written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age < FRESH))
}

/// An apt that knows one suite of one archive and nothing installed.
struct Apt {
    state: PathBuf,
}

impl Apt {
    fn new(state: PathBuf, archive: &str, suite: &str) -> Result<Self> {
        let _ = fs::remove_dir_all(&state);
        for inner in ["lists/partial", "cache/archives/partial", "empty", "packages", "root"] {
            fs::create_dir_all(state.join(inner))
                .with_context(|| format!("cannot make {}", state.display()))?;
        }
        let site = site(archive)?;
        let source = format!("deb [arch=amd64 signed-by={KEYRING}] {site} {suite} main\n");
        fs::write(state.join("sources.list"), source)?;
        fs::write(state.join("status"), "")?;
        Ok(Self { state })
    }

    fn command(&self, program: &str) -> Command {
        let path = |inner: &str| self.state.join(inner).display().to_string();
        let mut apt = Command::new(program);
        for (key, value) in [
            ("Dir::Etc::sourcelist", path("sources.list")),
            ("Dir::Etc::sourceparts", path("empty")),
            ("Dir::Etc::preferencesparts", path("empty")),
            ("Dir::State::lists", path("lists")),
            ("Dir::State::status", path("status")),
            ("Dir::Cache", path("cache")),
            ("Acquire::Languages", "none".into()),
            ("Acquire::Retries", "3".into()),
            ("APT::Sandbox::User", "root".into()),
            ("APT::Update::Error-Mode", "any".into()),
        ] {
            apt.arg("-o").arg(format!("{key}={value}"));
        }
        apt
    }

    /// The packages that hold the suite's newest kernel: their names carry its version.
    fn kernel_packages(&self) -> Result<Vec<String>> {
        capture(self.command("apt-get").args(["-qq", "update"]))?;
        let mut depends = self.command("apt-cache");
        depends.args(["depends", "--recurse", "--no-recommends", "--no-suggests"]);
        depends.args(["--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances"]);
        let listed = capture(depends.arg(META_PACKAGE))?;
        let mut packages: Vec<_> =
            listed.lines().filter(|name| is_kernel_package(name)).map(str::to_owned).collect();
        packages.sort_unstable();
        packages.dedup();
        if packages.is_empty() {
            bail!("{META_PACKAGE} leads to no kernel; its packages may be named anew");
        }
        Ok(packages)
    }

    fn download(&self, packages: &[String]) -> Result<PathBuf> {
        let folder = self.state.join("packages");
        let mut download = self.command("apt-get");
        capture(download.args(["-qq", "download"]).args(packages).current_dir(&folder))?;
        let root = self.state.join("root");
        for package in fs::read_dir(&folder)? {
            run(Command::new("dpkg-deb").arg("-x").arg(package?.path()).arg(&root))?;
        }
        Ok(root)
    }

    fn remove(&self) -> Result<()> {
        fs::remove_dir_all(&self.state)
            .with_context(|| format!("cannot remove {}", self.state.display()))
    }
}

/// Where this machine's own apt gets Debian from, so that its mirror serves this too.
fn site(archive: &str) -> Result<String> {
    let sites = capture(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(SITE)",
        "Created-By: Packages",
    ]))?;
    find_site(&sites, archive)
        .ok_or_else(|| anyhow!("this machine's apt has no source of Debian to fetch kernels from"))
}

fn find_site(sites: &str, archive: &str) -> Option<String> {
    let ending = |name: &str| {
        let ending = format!("/{name}");
        sites.lines().map(|site| site.trim_end_matches('/')).find_map(|s| s.strip_suffix(&ending))
    };
    // Mirrors keep their archives side by side.
    let base = ending(archive).or_else(|| ending("debian"))?;
    Some(format!("{base}/{archive}"))
}

/// Image and modules were one package up to 6.x and are several since.
fn is_kernel_package(name: &str) -> bool {
    let Some((kind, version)) = name.strip_prefix("linux-").and_then(|rest| rest.split_once('-'))
    else {
        return false;
    };
    ["image", "binary", "modules", "base"].contains(&kind)
        && version.starts_with(|first: char| first.is_ascii_digit())
        && version.ends_with("amd64")
}

/// Copies what a guest needs out of the unpacked packages.
fn keep(unpacked: &Path, folder: &Path) -> Result<()> {
    let base = [unpacked.to_owned(), unpacked.join("usr")]
        .into_iter()
        .find(|base| base.join("lib/modules").is_dir())
        .context("the kernel's packages hold no modules")?;
    let release = only_entry(&base.join("lib/modules"))?;
    let image = find_image(unpacked).context("the kernel's packages hold no image")?;
    fs::copy(&image, folder.join(IMAGE)).context("cannot keep the kernel's image")?;
    keep_modules(&base, &release, &folder.join(MODULES))?;
    fs::write(folder.join(RELEASE), release).context("cannot keep the kernel's release")
}

fn keep_modules(base: &Path, release: &str, folder: &Path) -> Result<()> {
    run(tool("depmod").arg("-b").arg(base).arg(release))?;
    let mut order = tool("modprobe");
    order.arg("-d").arg(base).args(["-S", release, "--show-depends", "-a"]).args(WANTED_MODULES);
    let order = capture(&mut order)?;
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder)?;
    let files = order.lines().filter_map(|line| line.strip_prefix("insmod "));
    for (place, file) in files.enumerate() {
        let file = file.trim();
        let name = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
        let name = name.split(".ko").next().unwrap_or_default();
        unpack_module(file, &folder.join(format!("{place:02}-{name}.ko")))?;
    }
    Ok(())
}

fn unpack_module(from: &str, to: &Path) -> Result<()> {
    let unpack = match Path::new(from).extension().and_then(|ending| ending.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        _ => {
            return fs::copy(from, to).map(drop).with_context(|| format!("cannot copy {from}"));
        }
    };
    let mut command = tool(unpack);
    command.args(["-q", "-d", "-c", from]).stdout(File::create(to)?);
    let status = command.status().with_context(|| format!("cannot run {unpack}"))?;
    check(&command, status)
}

fn only_entry(folder: &Path) -> Result<String> {
    let mut entries = fs::read_dir(folder)?;
    let entry = entries.next().with_context(|| format!("{} is empty", folder.display()))??;
    Ok(entry.file_name().to_string_lossy().into_owned())
}

fn find_image(folder: &Path) -> Option<PathBuf> {
    let entries: Vec<_> = fs::read_dir(folder).ok()?.filter_map(Result::ok).collect();
    let named = entries.iter().find(|entry| {
        entry.file_name().to_string_lossy().starts_with("vmlinuz") && entry.path().is_file()
    });
    let folders = entries.iter().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    named
        .map(fs::DirEntry::path)
        .or_else(|| folders.map(fs::DirEntry::path).find_map(|path| find_image(&path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_packages_are_told_from_others() {
        for name in ["linux-image-6.1.0-42-cloud-amd64", "linux-modules-7.2.3+deb14-cloud-amd64"] {
            assert!(is_kernel_package(name), "{name}");
        }
        for name in ["linux-image-cloud-amd64", "  Depends: linux-image-6.1.0-42-amd64", "kmod"] {
            assert!(!is_kernel_package(name), "{name}");
        }
    }

    #[test]
    fn archives_are_found_on_this_machines_mirror() {
        let both = "http://one.example/debian\nhttp://two.example/debian-security/\n";
        let one = "http://one.example/mirror/debian\n";
        let found = |sites, archive| find_site(sites, archive).unwrap();
        assert_eq!(found(both, "debian-security"), "http://two.example/debian-security");
        assert_eq!(found(one, "debian-security"), "http://one.example/mirror/debian-security");
        assert_eq!(found(one, "debian"), "http://one.example/mirror/debian");
        assert_eq!(find_site("http://other.example/ubuntu\n", "debian"), None);
    }
}
