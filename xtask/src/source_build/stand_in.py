"""The build entry of a stand-in for PyTorch's tree (tests.rs): compiles two libraries, as CMake would, and writes a wheel of the tree."""

import base64, hashlib, os, pathlib, platform, subprocess, sys, zipfile
out = pathlib.Path(sys.argv[sys.argv.index('--dist-dir') + 1])
if pathlib.Path('break').exists():
    sys.exit('[7/9] the stand-in was told to fail')
count = pathlib.Path('build/count')
count.parent.mkdir(exist_ok=True)
count.write_text(str(int(count.read_text()) + 1) if count.exists() else '1')
lib = pathlib.Path('build/lib')
lib.mkdir(exist_ok=True)
def link(name, *others):
    subprocess.run(['g++', '-shared', '-x', 'c++', '/dev/null', f'-Wl,-soname,{name}', '-o', lib / name, '-x', 'none',
                    '-Wl,--no-as-needed', *others], check=True)
link('libtorch_pinbuddy.so')
link('libtorch_cuda.so', *([lib / 'libtorch_pinbuddy.so'] if 'ours' in open('caffe2/CMakeLists.txt').read() else []))
version = os.environ['PYTORCH_BUILD_VERSION']
tags = f'cp{sys.version_info[0]}{sys.version_info[1]}-' * 2 + f'linux_{platform.machine()}'
info = f'torch-{version}.dist-info'
files = {
    'torch/include/ATen/core/A.h': open('aten/src/ATen/core/A.h', 'rb').read(),
    'torch/lib/libtorch_cuda.so': (lib / 'libtorch_cuda.so').read_bytes(),
    'torch/lib/libtorch_pinbuddy.so': (lib / 'libtorch_pinbuddy.so').read_bytes(),
    'torch/version.py': f"__version__ = '{version}'\ncuda: str = '12.4'\nhip = None\n".encode(),
    f'{info}/METADATA': f'Metadata-Version: 2.1\nName: torch\nVersion: {version}\n'.encode(),
    f'{info}/WHEEL': f'Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tags}\n'.encode(),
    f'{info}/top_level.txt': b'functorch\ntorch\n',
}
record = ''
for name, data in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
    record += f'{name},sha256={digest},{len(data)}\n'
files[f'{info}/RECORD'] = (record + f'{info}/RECORD,,\n').encode()
with zipfile.ZipFile(out / f'torch-{version}-{tags}.whl', 'w') as wheel:
    for name, data in files.items():
        wheel.writestr(name, data)
