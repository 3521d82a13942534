//! The reader of tables of lifetimes, which `pinbuddy plan --instance` is handed.

use pinbuddy_plan::Instance;
use pinbuddy_tools::input::table::Table;

/// Reads `bytes` as a table: there is an id for each block and no more blocks than bytes; what was read is written and
/// read again, the same; and what the planner takes of it adds up.
pub fn run(bytes: &[u8]) {
    let table = match Table::read(bytes) {
        Ok(table) => table,
        Err(why) => {
            assert!(why.to_string().starts_with("line "), "{why}");
            return;
        }
    };
    assert_eq!(table.ids.len(), table.blocks.len());
    assert!(table.blocks.len() <= bytes.len());
    let mut written = Vec::new();
    let offsets = vec![0; table.blocks.len()];
    table.write(&offsets, &mut written).unwrap();
    // The column of offsets comes on top, and lines have a limit.
    if bytes.len() < 4000 {
        assert_eq!(Table::read(&*written).unwrap(), table);
    }
    let _ = Instance::new(table.blocks);
}
