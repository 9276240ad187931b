//! The kernel program loaded for tests.
use aya::programs::Xdp;
use aya::{Ebpf, EbpfLoader};
pub fn load() -> Result<(Ebpf, u32), Box<dyn std::error::Error>> {
    let object = aya::include_bytes_aligned!(env!("LIMITER_OBJECT"));
    let mut ebpf = EbpfLoader::new()
        .override_global("USE_TEST_CLOCK", &1_u32, true)
        .override_global("AYA_LOG_LEVEL", &0u8, false)
        .load(object)?;
    let p: &mut Xdp = ebpf.program_mut("limiter").ok_or("no program")?.try_into()?;
    p.load()?;
    let n = p.info()?.verified_instruction_count().unwrap_or(0);
    Ok((ebpf, n))
}
