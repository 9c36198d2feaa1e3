// Generated from crates/schema/sensors.toml by `cargo xtask generate`. Do not edit.

/** Every sensor of devices. */
export const SENSORS = [
  {"column":true,"field":"temperature_celsius","graph":true,"label":["sensor","asic"],"limit":"temperature_limit_celsius","metric":"telltale_device_temperature_celsius","name":"temperature","part":null,"title":"Temperature","unit":"celsius"},
  {"column":false,"field":"temperature_limit_celsius","graph":false,"label":["sensor","asic"],"limit":null,"metric":"telltale_device_temperature_limit_celsius","name":"temperature_limit","part":null,"title":"Temperature limit","unit":"celsius"},
  {"column":true,"field":"power_watts","graph":true,"label":null,"limit":"power_limit_watts","metric":"telltale_device_power_watts","name":"power","part":null,"title":"Power","unit":"watts"},
  {"column":false,"field":"power_limit_watts","graph":false,"label":null,"limit":null,"metric":"telltale_device_power_limit_watts","name":"power_limit","part":null,"title":"Power limit","unit":"watts"},
  {"column":false,"field":"current_amperes","graph":false,"label":null,"limit":"current_limit_amperes","metric":"telltale_device_current_amperes","name":"current","part":null,"title":"Current","unit":"amperes"},
  {"column":false,"field":"current_limit_amperes","graph":false,"label":null,"limit":null,"metric":"telltale_device_current_limit_amperes","name":"current_limit","part":null,"title":"Current limit","unit":"amperes"},
  {"column":false,"field":"voltage_volts","graph":false,"label":null,"limit":"voltage_limit_volts","metric":"telltale_device_voltage_volts","name":"voltage","part":null,"title":"Voltage","unit":"volts"},
  {"column":false,"field":"voltage_limit_volts","graph":false,"label":null,"limit":null,"metric":"telltale_device_voltage_limit_volts","name":"voltage_limit","part":null,"title":"Voltage limit","unit":"volts"},
  {"column":true,"field":"aiclk_hertz","graph":true,"label":["clock","ai"],"limit":null,"metric":"telltale_device_clock_hertz","name":"clock","part":null,"title":"Clock","unit":"hertz"},
  {"column":false,"field":"axiclk_hertz","graph":false,"label":["clock","axi"],"limit":null,"metric":"telltale_device_clock_hertz","name":"axiclk","part":null,"title":"Axiclk","unit":"hertz"},
  {"column":false,"field":"arcclk_hertz","graph":false,"label":["clock","arc"],"limit":null,"metric":"telltale_device_clock_hertz","name":"arcclk","part":null,"title":"Arcclk","unit":"hertz"},
  {"column":false,"field":"fan_revolutions_per_minute","graph":false,"label":null,"limit":null,"metric":"telltale_device_fan_speed_revolutions_per_minute","name":"fan","part":null,"title":"Fan","unit":"revolutions_per_minute"},
  {"column":false,"field":"fan_ratio","graph":false,"label":null,"limit":null,"metric":"telltale_device_fan_ratio","name":"fan_ratio","part":null,"title":"Fan ratio","unit":"ratio"},
  {"column":false,"field":"heartbeat_total","graph":false,"label":null,"limit":null,"metric":"telltale_device_heartbeats_total","name":"heartbeat","part":null,"title":"Heartbeat","unit":"count"},
  {"column":false,"field":"thermal_trips_total","graph":false,"label":null,"limit":null,"metric":"telltale_device_thermal_trips_total","name":"thermal_trips","part":null,"title":"Thermal trips","unit":"count"},
  {"column":true,"field":"busy_ratio","graph":true,"label":null,"limit":null,"metric":"telltale_device_busy_ratio","name":"busy","part":"load","title":"Busy","unit":"ratio"},
  {"column":false,"field":"memory_busy_ratio","graph":false,"label":null,"limit":null,"metric":"telltale_device_memory_busy_ratio","name":"memory_busy","part":"load","title":"Memory busy","unit":"ratio"},
  {"column":false,"field":"memory_clock_hertz","graph":false,"label":["clock","memory"],"limit":null,"metric":"telltale_device_clock_hertz","name":"memory_clock","part":"load","title":"Memory clock","unit":"hertz"},
  {"column":false,"field":"encoder_busy_ratio","graph":false,"label":null,"limit":null,"metric":"telltale_device_encoder_busy_ratio","name":"encoder","part":"load","title":"Encoder","unit":"ratio"},
  {"column":false,"field":"decoder_busy_ratio","graph":false,"label":null,"limit":null,"metric":"telltale_device_decoder_busy_ratio","name":"decoder","part":"load","title":"Decoder","unit":"ratio"},
  {"column":false,"field":"performance_state","graph":false,"label":null,"limit":null,"metric":"telltale_device_performance_state","name":"pstate","part":"load","title":"Pstate","unit":"none"},
  {"column":false,"field":"corrected_errors_total","graph":false,"label":["severity","corrected"],"limit":null,"metric":"telltale_device_memory_errors_total","name":"corrected_errors","part":"memory_counts","title":"Corrected errors","unit":"count"},
  {"column":false,"field":"uncorrected_errors_total","graph":false,"label":["severity","uncorrected"],"limit":null,"metric":"telltale_device_memory_errors_total","name":"uncorrected_errors","part":"memory_counts","title":"Uncorrected errors","unit":"count"},
  {"column":false,"field":"corrected_errors_lifetime_total","graph":false,"label":["severity","corrected"],"limit":null,"metric":"telltale_device_memory_errors_lifetime_total","name":"corrected_lifetime","part":"memory_counts","title":"Corrected lifetime","unit":"count"},
  {"column":false,"field":"uncorrected_errors_lifetime_total","graph":false,"label":["severity","uncorrected"],"limit":null,"metric":"telltale_device_memory_errors_lifetime_total","name":"uncorrected_lifetime","part":"memory_counts","title":"Uncorrected lifetime","unit":"count"},
  {"column":false,"field":"sram_uncorrected_errors_total","graph":false,"label":null,"limit":null,"metric":"telltale_device_sram_uncorrected_errors_total","name":"sram_errors","part":"memory_counts","title":"Sram errors","unit":"count"},
  {"column":false,"field":"sram_uncorrected_lifetime_total","graph":false,"label":null,"limit":null,"metric":"telltale_device_sram_uncorrected_lifetime_total","name":"sram_lifetime","part":"memory_counts","title":"Sram lifetime","unit":"count"},
  {"column":false,"field":"pcie_generation","graph":false,"label":null,"limit":null,"metric":"telltale_device_pcie_link_generation","name":"pcie_generation","part":"link","title":"PCIe generation","unit":"count"},
  {"column":false,"field":"pcie_generation_max","graph":false,"label":null,"limit":null,"metric":"telltale_device_pcie_link_generation_max","name":"pcie_generation_max","part":"link","title":"PCIe generation, max","unit":"count"},
  {"column":false,"field":"pcie_width","graph":false,"label":null,"limit":null,"metric":"telltale_device_pcie_link_lanes","name":"pcie_width","part":"link","title":"PCIe lanes","unit":"count"},
  {"column":false,"field":"pcie_width_max","graph":false,"label":null,"limit":null,"metric":"telltale_device_pcie_link_lanes_max","name":"pcie_width_max","part":"link","title":"PCIe lanes, max","unit":"count"},
  {"column":false,"field":"pcie_received_bytes_per_second","graph":true,"label":null,"limit":null,"metric":"telltale_device_pcie_received_bytes_per_second","name":"pcie_rx","part":"link","title":"PCIe received","unit":"bytes_per_second"},
  {"column":false,"field":"pcie_sent_bytes_per_second","graph":true,"label":null,"limit":null,"metric":"telltale_device_pcie_sent_bytes_per_second","name":"pcie_tx","part":"link","title":"PCIe sent","unit":"bytes_per_second"},
  {"column":false,"field":"numa_node","graph":false,"label":null,"limit":null,"metric":"telltale_device_numa_node","name":"numa_node","part":"link","title":"NUMA node","unit":"count"},
  {"column":false,"field":"energy_joules_total","graph":false,"label":null,"limit":null,"metric":"telltale_device_energy_joules_total","name":"energy","part":"power","title":"Energy","unit":"joules"},
  {"column":false,"field":"power_limit_default_watts","graph":false,"label":null,"limit":null,"metric":"telltale_device_power_limit_default_watts","name":"power_limit_default","part":"power","title":"Power limit default","unit":"watts"},
  {"column":false,"field":"power_limit_min_watts","graph":false,"label":null,"limit":null,"metric":"telltale_device_power_limit_min_watts","name":"power_limit_min","part":"power","title":"Power limit min","unit":"watts"},
  {"column":false,"field":"power_limit_max_watts","graph":false,"label":null,"limit":null,"metric":"telltale_device_power_limit_max_watts","name":"power_limit_max","part":"power","title":"Power limit max","unit":"watts"},
  {"column":false,"field":"xid_errors_total","graph":false,"label":null,"limit":null,"metric":"telltale_device_xid_errors_total","name":"xid_errors","part":"errors","title":"Xid errors","unit":"count"},
  {"column":false,"field":"xid_last","graph":false,"label":null,"limit":null,"metric":"telltale_device_xid_last","name":"xid_last","part":"errors","title":"Xid last","unit":"none"},
  {"column":false,"field":"xid_hardware_errors_total","graph":false,"label":null,"limit":null,"metric":"telltale_device_xid_hardware_errors_total","name":"xid_hardware","part":"errors","title":"Xid hardware","unit":"count"},
  {"column":false,"field":"xid_hardware_last","graph":false,"label":null,"limit":null,"metric":"telltale_device_xid_hardware_last","name":"xid_hardware_last","part":"errors","title":"Xid hardware last","unit":"none"},
  {"column":false,"field":"pcie_replays_total","graph":false,"label":null,"limit":null,"metric":"telltale_device_pcie_replays_total","name":"pcie_replays","part":"errors","title":"Pcie replays","unit":"count"},
  {"column":false,"field":"remapped_rows_corrected","graph":false,"label":["severity","corrected"],"limit":null,"metric":"telltale_device_remapped_rows","name":"remapped_rows_corrected","part":"errors","title":"Remapped rows corrected","unit":"count"},
  {"column":false,"field":"remapped_rows_uncorrected","graph":false,"label":["severity","uncorrected"],"limit":null,"metric":"telltale_device_remapped_rows","name":"remapped_rows_uncorrected","part":"errors","title":"Remapped rows uncorrected","unit":"count"},
  {"column":false,"field":"row_remap_pending","graph":false,"label":null,"limit":null,"metric":"telltale_device_row_remap_pending","name":"row_remap_pending","part":"errors","title":"Row remap pending","unit":"none"},
  {"column":false,"field":"row_remap_failed","graph":false,"label":null,"limit":null,"metric":"telltale_device_row_remap_failed","name":"row_remap_failed","part":"errors","title":"Row remap failed","unit":"none"},
  {"column":false,"field":"retired_pages_corrected","graph":false,"label":["severity","corrected"],"limit":null,"metric":"telltale_device_retired_pages","name":"retired_pages_corrected","part":"errors","title":"Retired pages corrected","unit":"count"},
  {"column":false,"field":"retired_pages_uncorrected","graph":false,"label":["severity","uncorrected"],"limit":null,"metric":"telltale_device_retired_pages","name":"retired_pages_uncorrected","part":"errors","title":"Retired pages uncorrected","unit":"count"},
  {"column":false,"field":"page_retirement_pending","graph":false,"label":null,"limit":null,"metric":"telltale_device_page_retirement_pending","name":"page_retirement_pending","part":"errors","title":"Page retirement pending","unit":"none"},
  {"column":false,"field":"nvlink_links","graph":false,"label":null,"limit":null,"metric":"telltale_device_nvlink_links","name":"nvlink_links","part":"nvlink","title":"Nvlink links","unit":"count"},
  {"column":false,"field":"nvlink_links_up","graph":false,"label":null,"limit":null,"metric":"telltale_device_nvlink_links_up","name":"nvlink_links_up","part":"nvlink","title":"Nvlink links up","unit":"count"},
  {"column":false,"field":"nvlink_received_bytes_total","graph":false,"label":null,"limit":null,"metric":"telltale_device_nvlink_received_bytes_total","name":"nvlink_rx_total","part":"nvlink","title":"Nvlink rx total","unit":"bytes"},
  {"column":false,"field":"nvlink_sent_bytes_total","graph":false,"label":null,"limit":null,"metric":"telltale_device_nvlink_sent_bytes_total","name":"nvlink_tx_total","part":"nvlink","title":"Nvlink tx total","unit":"bytes"},
  {"column":false,"field":"nvlink_received_bytes_per_second","graph":false,"label":null,"limit":null,"metric":"telltale_device_nvlink_received_bytes_per_second","name":"nvlink_rx","part":"nvlink","title":"Nvlink rx","unit":"bytes_per_second"},
  {"column":false,"field":"nvlink_sent_bytes_per_second","graph":false,"label":null,"limit":null,"metric":"telltale_device_nvlink_sent_bytes_per_second","name":"nvlink_tx","part":"nvlink","title":"Nvlink tx","unit":"bytes_per_second"},
  {"column":false,"field":"nvlink_crc_errors_total","graph":false,"label":["kind","crc"],"limit":null,"metric":"telltale_device_nvlink_errors_total","name":"nvlink_crc_errors","part":"nvlink","title":"Nvlink crc errors","unit":"count"},
  {"column":false,"field":"nvlink_replays_total","graph":false,"label":["kind","replay"],"limit":null,"metric":"telltale_device_nvlink_errors_total","name":"nvlink_replays","part":"nvlink","title":"Nvlink replays","unit":"count"},
  {"column":false,"field":"nvlink_recoveries_total","graph":false,"label":["kind","recovery"],"limit":null,"metric":"telltale_device_nvlink_errors_total","name":"nvlink_recoveries","part":"nvlink","title":"Nvlink recoveries","unit":"count"},
  {"column":false,"field":"pcie_correctable_errors_total","graph":false,"label":["severity","correctable"],"limit":null,"metric":"telltale_device_pcie_errors_total","name":"pcie_correctable_errors","part":"link","title":"PCIe errors corrected","unit":"count"},
  {"column":false,"field":"pcie_nonfatal_errors_total","graph":false,"label":["severity","nonfatal"],"limit":null,"metric":"telltale_device_pcie_errors_total","name":"pcie_nonfatal_errors","part":"link","title":"PCIe errors nonfatal","unit":"count"},
  {"column":false,"field":"pcie_fatal_errors_total","graph":false,"label":["severity","fatal"],"limit":null,"metric":"telltale_device_pcie_errors_total","name":"pcie_fatal_errors","part":"link","title":"PCIe errors fatal","unit":"count"},
];

/** What it says of a device; undefined where the device has no such part. */
export function of(telemetry, { field, part }) {
  return (part ? telemetry[part] : telemetry)?.[field];
}

/** The sensor with this field. */
export function named(field) {
  return SENSORS.find((sensor) => sensor.field === field);
}
