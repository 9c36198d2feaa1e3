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
  {"column":false,"field":"corrected_errors_total","graph":false,"label":["severity","corrected"],"limit":null,"metric":"telltale_device_memory_errors_total","name":"corrected_errors","part":"memory_counts","title":"Corrected errors","unit":"count"},
  {"column":false,"field":"uncorrected_errors_total","graph":false,"label":["severity","uncorrected"],"limit":null,"metric":"telltale_device_memory_errors_total","name":"uncorrected_errors","part":"memory_counts","title":"Uncorrected errors","unit":"count"},
  {"column":false,"field":"pcie_generation","graph":false,"label":null,"limit":null,"metric":"telltale_device_pcie_link_generation","name":"pcie_generation","part":"link","title":"PCIe generation","unit":"count"},
  {"column":false,"field":"pcie_generation_max","graph":false,"label":null,"limit":null,"metric":"telltale_device_pcie_link_generation_max","name":"pcie_generation_max","part":"link","title":"PCIe generation, max","unit":"count"},
  {"column":false,"field":"pcie_width","graph":false,"label":null,"limit":null,"metric":"telltale_device_pcie_link_lanes","name":"pcie_width","part":"link","title":"PCIe lanes","unit":"count"},
  {"column":false,"field":"pcie_width_max","graph":false,"label":null,"limit":null,"metric":"telltale_device_pcie_link_lanes_max","name":"pcie_width_max","part":"link","title":"PCIe lanes, max","unit":"count"},
  {"column":false,"field":"pcie_received_bytes_per_second","graph":true,"label":null,"limit":null,"metric":"telltale_device_pcie_received_bytes_per_second","name":"pcie_rx","part":"link","title":"PCIe received","unit":"bytes_per_second"},
  {"column":false,"field":"pcie_sent_bytes_per_second","graph":true,"label":null,"limit":null,"metric":"telltale_device_pcie_sent_bytes_per_second","name":"pcie_tx","part":"link","title":"PCIe sent","unit":"bytes_per_second"},
  {"column":false,"field":"numa_node","graph":false,"label":null,"limit":null,"metric":"telltale_device_numa_node","name":"numa_node","part":"link","title":"NUMA node","unit":"count"},
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
